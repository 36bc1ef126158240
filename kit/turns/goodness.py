"""How well a curve fits: distance, tails, and p-values that know the parameters were fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]


def ks_distance(seconds: Floats, mu: float, sigma: float) -> float:
    """Largest distance between the empirical distribution and the log-normal (Kolmogorov-Smirnov D)."""
    model = ndtr((np.log(np.sort(seconds)) - mu) / sigma)
    n = len(model)
    steps = np.arange(n + 1) / n
    return float(max((steps[1:] - model).max(), (model - steps[:-1]).max()))
