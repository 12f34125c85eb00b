"""How numbers are stored: casts and quantising, and changes that are no more than these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kinprint.diff.findings import MOST, count_of, share_of
from kinprint.diff.results import OperationFound, TensorChange
from kinprint.records import Operation, Side
from kinprint.text import message

FLOATS = ("F64", "F32", "BF16", "F16")
"""Formats that are not quantised."""
_HALF = 16  # bits of a float; grids have fewer
# Relative errors that quantising makes at most, by bits: about twice those of rounding normal
# numbers to a grid with a scale for 128 of them (largest 3.0 standard deviations).
_COARSEST = {1: 1.0, 2: 0.6, 3: 0.35, 4: 0.2, 5: 0.1, 6: 0.05, 8: 0.03}
# The same of formats that round each number by itself: 1.6 times what was measured of normal
# numbers. Those of Student's t with three degrees of freedom have up to 1.55 times as much.
_MEASURED = {
    "Q4_0": 0.138,
    "Q4_1": 0.125,
    "Q5_0": 0.069,
    "Q5_1": 0.061,
    "Q8_0": 0.009,
    "MXFP4": 0.184,
}
_HARDLY = 1.5  # times these errors, of which a grid then made a good part itself


def is_rounded(one: TensorChange) -> bool:
    """Whether a tensor changed no more than the format that it is stored in now would change it.

    Formats that carry errors on from column to column (GPTQ) are no rounding of single numbers.
    """
    if one.rounding is not None:
        return one.rounding.coarser is Side.B
    if one.grid is not None and one.b_format in FLOATS and one.relative is not None:
        return one.relative.value <= _largest_error(None, one.grid)
    packed = one.b_format not in FLOATS and one.a_format != one.b_format
    if not packed or one.relative is None or was_coarser(one):
        return False
    return one.relative.value <= _largest_error(one.b_format, one.b_bits)


def was_coarser(one: TensorChange) -> bool:
    """Whether the first model holds a tensor more coarsely than the second."""
    if one.rounding is not None:
        return one.rounding.coarser is Side.A
    if one.a_bits is None or one.b_bits is None or one.relative is None or not _packed(one):
        return False
    finer = one.a_bits < one.b_bits or one.b_format in FLOATS
    return finer and one.relative.value <= _largest_error(one.a_format, one.a_bits)


def is_beyond_format(one: TensorChange) -> bool:
    """Whether a tensor changed by more than storing it in another format does."""
    largest = _largest_error(one.b_format, one.b_bits)
    packed = one.b_format not in FLOATS and one.a_format != one.b_format
    return packed and one.relative is not None and one.relative.value > largest > 0


def is_hardly_more(one: TensorChange) -> bool:
    """Whether a coarse grid of either model made a good part of a change, so that errors without
    a direction lie over whatever else was done."""
    grids = [
        (form, bits)
        for form, bits in ((one.a_format, one.a_bits), (one.b_format, one.b_bits))
        if form not in FLOATS and one.a_format != one.b_format
    ]
    errors = [_largest_error(form, bits) for form, bits in (*grids, (None, one.grid))]
    return one.relative is not None and one.relative.value <= _HARDLY * max(errors)


def _largest_error(form: str | None, bits: int | None) -> float:
    """The relative error that rounding to a format makes at most, as far as is known."""
    return _MEASURED.get(form or "", _COARSEST.get(bits or 0, 0.0))


def stored_otherwise(alike: Sequence[TensorChange]) -> Iterator[OperationFound]:
    """Casts and quantisations, by the format that most numbers of the second model have.

    Vectors count only where there are no matrices: GGUF files keep them in single precision.
    """
    numbers: Counter[str] = Counter()
    alike = [one for one in alike if len(one.shape) > 1] or alike
    for one in alike:
        rounded = one.rounding is not None and one.rounding.coarser is Side.B
        rounded = rounded or one.grid is not None
        if one.b_format is not None and (one.a_format != one.b_format or rounded):
            numbers[one.b_format] += one.numbers
    if not numbers:
        return
    name = numbers.most_common(1)[0][0]
    of_it = [one for one in alike if one.b_format == name]
    bits, before = (
        of_it[0].b_bits,
        next((one.a_format for one in of_it if one.a_format != name), name),
    )
    known = [one.rounding for one in of_it if one.rounding is not None]
    grids = Counter(one.bits for one in known if one.coarser is Side.B)
    grid = grids.most_common(1)[0][0] if grids else None
    beside = [one for one in of_it if one.grid is not None]
    changed = [one for one in of_it if not one.equal]
    shorter = grid is not None and bits is not None and grid < bits
    if name in FLOATS and grid is not None and grid >= _HALF and (shorter or before == name):
        count = sum(one.bits == grid and one.coarser is Side.B for one in known)
        evidence = message(
            "diff.operation.cast-rounded", count=count, of=len(of_it), bits=grid, format=name
        )
        yield OperationFound(Operation.CAST, evidence, format=None if shorter else name, bits=grid)
    elif name in FLOATS and shorter and share_of(changed, _is_on_grid) > 0.5:
        evidence = message("diff.operation.grid", bits=grid, format=name)
        yield OperationFound(Operation.QUANTIZED, evidence, bits=grid)
    elif name in FLOATS and share_of(of_it, lambda one: one.grid is not None) >= 1 - MOST:
        grid = Counter(one.grid for one in beside).most_common(1)[0][0]
        more = len(beside) - count_of(beside, is_rounded)
        key = "grid-besides" if more else "grid-perhaps-more"
        counts = {"count": more, "of": len(beside)} if more else {}
        evidence = message(f"diff.operation.{key}", bits=grid, format=name, **counts)
        yield OperationFound(Operation.QUANTIZED, evidence, bits=grid)
    elif name in FLOATS or any(was_coarser(one) or one.equal for one in of_it if _packed(one)):
        if before != name:
            evidence = message("diff.operation.cast", before=before, after=name)
            yield OperationFound(Operation.CAST, evidence, format=name, bits=bits)
    else:
        packed = [one for one in of_it if len(one.shape) > 1 and not one.equal]
        more = len(packed) - count_of(packed, is_rounded)
        key = "quantized-besides" if more else "quantized-perhaps-more"
        if packed and all(one.rounding is not None for one in packed):
            key, more = "quantized", 0
        counts = {"count": more, "of": len(packed)} if more else {}
        evidence = message(f"diff.operation.{key}", format=name, bits=bits, **counts)
        yield OperationFound(Operation.QUANTIZED, evidence, format=name, bits=bits)


def _is_on_grid(one: TensorChange) -> bool:
    """Whether the second model holds the numbers of the first rounded to a coarse grid."""
    known = one.rounding
    return known is not None and known.coarser is Side.B and known.bits < _HALF


def _packed(one: TensorChange) -> bool:
    """Whether the first model has a tensor in a quantised format already."""
    return one.a_format is not None and one.a_format not in FLOATS
