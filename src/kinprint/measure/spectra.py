"""Singular values and leading subspaces, and how alike those of two matrices are.

Spectra survive every rotation, which is why people compare them; they are also alike for
unrelated matrices of one architecture, which is why they cannot accuse.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from kinprint.algebra import busy_algebra
from kinprint.device import array_module, downloaded, uploaded
from kinprint.measure import blocks
from kinprint.measure.blocks import Floats
from kinprint.measure.gram import PANEL

_DIRECT = 1 << 22
"""Elements up to which a whole double copy is small enough for a full decomposition."""


@blocks.quiet
def singular_values(a: ArrayLike, direct: int = _DIRECT) -> Floats:
    """Singular values, largest first; empty if a value is no finite number.

    Small matrices are decomposed; of large ones the smaller Gram matrix is, summed in
    blocks, which loses values under about 1e-8 of the largest: those come out as zero.
    """
    return _decompose(a, 0, direct)[0]


def noise_ratio(a: ArrayLike) -> float:
    """The largest singular value, as a share of what independent numbers of that size have.

    That is σ(√n + √d) for n × d numbers of variance σ² (Geman 1980), a little less where they are
    few. NaN of zeros.
    """
    values = singular_values(a)
    height, width = np.shape(a)
    size = math.sqrt(float(np.square(values).sum()) / max(height * width, 1))
    edge = size * (math.sqrt(height) + math.sqrt(width))
    return float(values[0]) / edge if edge else math.nan


def spectrum_cosine(a: ArrayLike, b: ArrayLike) -> float:
    """Cosine of the two lists of singular values, the shorter filled with zeros.

    Sorted positive numbers are alike whatever they come from: 0.9 means little.
    """
    s, t = singular_values(a), singular_values(b)
    length = max(len(s), len(t))
    s, t = (np.pad(one, (0, length - len(one))) for one in (s, t))
    found = blocks.sums(s, t)
    return found.cosine if found else math.nan


def spectrum_log_distance(a: ArrayLike, b: ArrayLike, share: float = 1e-6) -> float:
    """Root mean square of ln(s/t) over singular values, each list first divided by its largest.

    Only values above `share` of the largest in both lists count, so rank is not compared.
    """
    s, t = singular_values(a), singular_values(b)
    kept = min(len(s), len(t))
    if not kept or not s[0] or not t[0]:
        return math.nan
    s, t = s[:kept] / s[0], t[:kept] / t[0]
    both = (s > share) & (t > share)
    return float(np.sqrt(np.mean(np.log(s[both] / t[both]) ** 2)))


@blocks.quiet
def principal_angles(a: ArrayLike, b: ArrayLike, k: int = 8, direct: int = _DIRECT) -> Floats:
    """Angles in radians between the spans of the k leading right singular vectors, rising.

    Columns must correspond. Small angles come from sines and large ones from cosines (Björck
    and Golub 1973), for a cosine cannot tell 1e-9 from zero. Empty if a matrix has fewer
    than k directions.
    """
    x, y = blocks.matrix(a), blocks.matrix(b)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"{x.shape[1]} and {y.shape[1]} columns do not correspond")
    bases = [_decompose(m, k, direct)[1] for m in (x, y)]
    if k < 1 or any(basis.shape[1] < k for basis in bases):
        return np.empty(0)
    u, v = bases
    inner = u.T @ v
    cosines = np.clip(np.linalg.svd(inner, compute_uv=False), 0.0, 1.0)
    sines = np.clip(np.linalg.svd(v - u @ inner, compute_uv=False)[::-1], 0.0, 1.0)
    small: Floats = np.where(cosines > math.sqrt(0.5), np.arcsin(sines[:k]), np.arccos(cosines))
    return small


def subspace_overlap(a: ArrayLike, b: ArrayLike, k: int = 8) -> float:
    """Mean squared cosine of the k principal angles; by chance k over the number of columns."""
    angles = principal_angles(a, b, k)
    return float(np.mean(np.cos(angles) ** 2)) if len(angles) else math.nan


def _decompose(a: ArrayLike, k: int, direct: int) -> tuple[Floats, Floats]:
    """Singular values, and up to k right singular vectors as columns (fewer if rank ends)."""
    m = blocks.matrix(a)
    seen = blocks.scan(m)
    nothing = np.empty(0), np.empty((m.shape[1], 0))
    if not m.size or not seen.finite:
        return nothing
    power = blocks.exponent_of(seen.peak)
    if m.size <= direct:
        whole = blocks.cast(m, power)
        if not k:
            values = np.linalg.svd(whole, compute_uv=False)
            return np.ldexp(values, power), nothing[1]
        _, values, vectors = np.linalg.svd(whole, full_matrices=False)
        tiny, basis = values[0] * max(m.shape) * 1e-15, vectors.T
    else:
        with busy_algebra():
            values, basis = _by_gram(m, power, k)
        tiny = values[0] * 1e-7
    rank = int((values > tiny).sum())
    return np.ldexp(values, power), basis[:, : min(k, rank)]


def _by_gram(m: blocks.Array, power: int, k: int) -> tuple[Floats, Floats]:
    """The same from the eigenvalues of the smaller product, MᵀM or MMᵀ."""
    wide = m.shape[1] > m.shape[0]
    long = m.T if wide else m
    product = uploaded(np.zeros((long.shape[1],) * 2))
    for part in blocks.row_blocks(long, PANEL):
        rows = uploaded(blocks.cast(long[part], power))
        product += rows.T @ rows
    algebra = array_module(product).linalg
    if not k:
        squares = downloaded(algebra.eigvalsh(product))[::-1]
        return _roots(squares), np.empty((m.shape[1], 0))
    squares, vectors = map(downloaded, algebra.eigh(product))
    values, leading = _roots(squares[::-1]), vectors[:, ::-1][:, :k]
    if not wide:
        return values, leading
    basis = np.empty((m.shape[1], leading.shape[1]))
    for part in blocks.row_blocks(long, PANEL):
        basis[part] = blocks.cast(long[part], power) @ leading
    return values, np.linalg.qr(basis)[0]


def _roots(squares: blocks.Array) -> Floats:
    """Roots of eigenvalues; what is rounding beside the largest is zero."""
    kept: Floats = np.sqrt(np.where(squares > squares[0] * 1e-15, squares, 0.0))
    return kept
