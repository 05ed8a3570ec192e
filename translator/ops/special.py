"""Special functions that neither NumPy nor the `math` module has, in float64.

Scalar functions take and return Python floats; the Bessel functions take arrays. Errors are near 1e-15: relative ones,
but absolute ones of the Bessel functions of the first kind and near the zeros of the second.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from .numpy_functions import library as _np

NODES = 240  # of the quadratures: enough for |x| below FAR
FAR = 40.0  # from here on the asymptotic series of the Bessel functions is exact to rounding


def gamma(x: float) -> float:
    """The gamma function; infinite at zero, NaN at the negative integers."""
    return math.copysign(math.inf, x) if x == 0 else math.gamma(x)


def log_gamma(x: float) -> float:
    """The logarithm of |gamma(x)|; infinite at its poles."""
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def scaled_erfc(x: float) -> float:
    """The product exp(x * x) * erfc(x), without overflow of the first factor."""
    if x < 20:
        return math.exp(x * x) * math.erfc(x)
    term = total = 1.0
    for k in range(1, 12):
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * math.sqrt(math.pi))


def inverse_normal(p: float) -> float:
    """The x at which the standard normal distribution function is p."""
    from statistics import NormalDist

    if not 0.0 < p < 1.0:
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)
    return NormalDist().inv_cdf(p)


def inverse_erf(y: float) -> float:
    """The x with erf(x) = y."""
    if not abs(y) < 0.5:
        return math.copysign(inverse_erfc(1.0 - abs(y)), y)
    x = y * math.sqrt(math.pi) / 2
    for _ in range(6):  # Newton: quadratic, from a start that is within a few percent
        x -= (math.erf(x) - y) * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return x


def inverse_erfc(y: float) -> float:
    """The x with erfc(x) = y."""
    return inverse_erf(1.0 - y) if 0.5 < y < 1.5 else -inverse_normal(y / 2) / math.sqrt(2)


# --------------------------------------------------------------------------------------------------------- Bessel


def bessel_j(order: int, x: Any) -> Any:
    """The Bessel function of the first kind; NaN for negative orders, as CUDA's."""
    np = _np()
    if order < 0:
        return np.full(x.shape, np.nan)
    near = np.clip(x, -_far(order), _far(order))[..., None]
    angles = (np.arange(NODES) + 0.5) * (np.pi / NODES)
    integral = np.cos(order * angles - near * np.sin(angles)).mean(axis=-1)
    return np.where(np.abs(x) < _far(order), integral, _at_infinity(order, np.abs(x), np.cos) * np.sign(x) ** order)


def bessel_y(order: int, x: Any) -> Any:
    """The Bessel function of the second kind; NaN for negative orders and arguments."""
    np = _np()
    if order < 0:
        return np.full(x.shape, np.nan)
    near = np.clip(x, 1e-300, _far(order))[..., None]
    nodes, weights = _gauss()
    angles = (nodes + 1) * (np.pi / 2)
    first = (np.sin(near * np.sin(angles) - order * angles) * weights).sum(axis=-1) / 2
    limit = np.arcsinh(80 / near)
    for _ in range(8):  # beyond the limit the second integrand is below exp(-80)
        limit = np.arcsinh((80 + order * limit) / near)
    t = (nodes + 1) * (limit / 2)
    decay = np.exp(order * t - near * np.sinh(t)) + (-1) ** order * np.exp(-order * t - near * np.sinh(t))
    second = (decay * weights * (limit / 2)).sum(axis=-1) / np.pi
    value = np.where(x < _far(order), first - second, _at_infinity(order, x, np.sin))
    return np.where(x > 0, value, np.where(x == 0, -np.inf, np.nan))


def bessel_i(order: int, x: Any) -> Any:
    """The modified Bessel function of the first kind."""
    np = _np()
    angles = (np.arange(NODES) + 0.5) * (np.pi / NODES)
    values = (np.exp(x[..., None] * np.cos(angles)) * np.cos(order * angles)).mean(axis=-1)
    return np.where(np.isinf(x), np.inf * np.sign(x) ** order, values)


def _far(order: int) -> float:
    return FAR + order * order


@lru_cache(maxsize=1)
def _gauss() -> tuple[Any, Any]:
    """Nodes and weights of Gauss and Legendre's quadrature over [-1, 1]."""
    nodes, weights = _np().polynomial.legendre.leggauss(NODES)
    return nodes, weights


def _at_infinity(order: int, x: Any, wave: Any) -> Any:
    """Hankel's asymptotic series: J with `wave` = cos, Y with sin."""
    np = _np()
    x = np.maximum(x, _far(order))
    term, even, odd = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    for k in range(1, 24):
        term = term * (4 * order * order - (2 * k - 1) ** 2) / (k * 8 * x)
        sign = -1 if k % 4 in (2, 3) else 1
        if k % 2:
            odd = odd + sign * term
        else:
            even = even + sign * term
    phase = x - order * np.pi / 2 - np.pi / 4
    shifted = np.sin(phase) if wave is np.cos else -np.cos(phase)
    return np.where(np.isinf(x), 0.0, np.sqrt(2 / (np.pi * x)) * (even * wave(phase) - odd * shifted))
