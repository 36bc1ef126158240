"""Start numba without scipy: importing this module loads the part of numba that asks for it.

When its first compiled function is loaded, numba imports `scipy.linalg` to see whether there is a BLAS: 0.15 s and
15 MB in every process, for matrix products that no loop of the kit has. Here the question is put off: a function that
needs a BLAS asks again when it is compiled.
"""

from numba.np import linalg

_asked = linalg.ensure_blas
linalg.ensure_blas = lambda: None
try:
    import numba.np.arraymath  # noqa: F401  where numba asks
finally:
    linalg.ensure_blas = _asked
