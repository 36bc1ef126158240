"""Names as 64-bit codes, and codes as dense numbers: who has been seen before, without comparing text twice.

DuckDB hashes the names; 0 stands for no name. Two of 10 million names share a code with a chance of 3 in a million.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

FIRST_SLOTS = 1 << 12


def code_sql(*names: str) -> str:
    """The code of one or several columns together; 0 where the first is NULL."""
    return f"CASE WHEN {names[0]} IS NULL THEN 0::UBIGINT ELSE hash({', '.join(names)}) END"


@njit(cache=True, nogil=True)
def _place(slots: Any, names: Any, code: Any) -> Any:
    """The slot of a code: where it is, or the empty one where it belongs."""
    mask = np.uint64(slots.size - 1)
    at = (code ^ (code >> np.uint64(32))) & mask
    while slots[at] >= 0 and names[slots[at]] != code:
        at = (at + np.uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)
def _numbered(codes: Any, slots: Any) -> Any:
    """Number of each code in order of first appearance (-1 for code 0), the codes by number."""
    number = np.empty(codes.size, np.int32)
    names = np.empty(codes.size, np.uint64)
    seen, last, before = 0, np.uint64(0), np.int32(-1)
    for row in range(codes.size):
        code = codes[row]
        if code != last:
            last, before = code, np.int32(-1)
            if code != 0:
                if 2 * seen >= slots.size:
                    slots = np.full(slots.size * 4, -1, np.int32)
                    for known in range(seen):
                        slots[_place(slots, names, names[known])] = known
                at = _place(slots, names, code)
                if slots[at] < 0:
                    slots[at] = seen
                    names[seen] = code
                    seen += 1
                before = slots[at]
        number[row] = before
    return number, names[:seen].copy()


def numbered(codes: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """(dense number of each row's code in order of first appearance, -1 where it has none; the code of each number)."""
    number, names = _numbered(codes, np.full(FIRST_SLOTS, -1, np.int32))
    return number, names


@njit(cache=True, nogil=True)
def _earlier(codes: Any, wanted: Any, slots: Any) -> Any:
    found = np.full(codes.size, -1, np.int64)
    row_of = np.empty(codes.size, np.int64)
    names = np.empty(codes.size, np.uint64)
    seen = 0
    for row in range(codes.size):
        if wanted[row] != 0:
            at = _place(slots, names, wanted[row])
            if slots[at] >= 0:
                found[row] = row_of[slots[at]]
        if codes[row] != 0:
            at = _place(slots, names, codes[row])
            if slots[at] < 0:
                slots[at], names[seen] = seen, codes[row]
                seen += 1
            row_of[slots[at]] = row
    return found


def earlier(codes: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Per row the latest earlier row whose code is the wanted one; -1 without one."""
    size = 1 << max(12, int(codes.size * 2).bit_length())
    return np.asarray(_earlier(codes, wanted, np.full(size, -1, np.int32)), np.int64)


@njit(cache=True, nogil=True)
def _turns(chain: Any, chains: int) -> Any:
    count = np.zeros(chains, np.int32)
    turn = np.zeros(chain.size, np.int32)
    for row in range(chain.size):
        if chain[row] >= 0:
            count[chain[row]] += 1
            turn[row] = count[chain[row]]
    return turn


def turns(chain: NDArray[np.int32], chains: int) -> NDArray[np.int32]:
    """Place of each row in its chain, from 1; 0 without a chain."""
    return np.asarray(_turns(chain, chains), np.int32)
