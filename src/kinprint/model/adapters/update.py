"""What an adapter does to one weight of its base: which bytes some rows need, and the sum.

A pure pair, as for quantised weights: `needed` says which slices of the adapter's file hold
what some rows want, `merged_rows` adds them to the rows of the base. Nothing is rounded to
the type of the base, as a library does that writes a merged model: the caller compares
what two files say.

Formulas: LoRA, W + s·B·A with s = alpha / r (Hu et al. 2021) or alpha / √r (Kalajdzievski
2023); DoRA, m · V / ‖V‖ by row with V = W + s·B·A (Liu et al. 2024); AdaLoRA, B·(E ∘ A)
(Zhang et al. 2023); LoHa, (B₁·A₁) ∘ (B₂·A₂) (Hyeon-Woo et al. 2021); IA3, W scaled by output
or by input (Liu et al. 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np
from msgspec import Struct, field

from kinprint.errors import SliceOutside
from kinprint.model.adapters.factors import Factor
from kinprint.model.quantised.weight import Floats, Rows, row_slices
from kinprint.reader.decode import Array, as_float32
from kinprint.records import Slice, TensorSpec
from kinprint.text import message

# Vectors that are read in whole, whatever rows are wanted.
_WHOLE = ("diagonal", "alpha", "by_input")
# Vectors that have one number for each output.
_BY_OUTPUT = ("magnitude", "by_output", "added")


class Update(Struct, frozen=True):
    """One weight of the base and what the adapter stores for it.

    `name` is the base's tensor. `kind` is "lora", "dora", "adalora", "loha", "embedding",
    "ia3", "bias" (added to a bias), "replaced" or "tokens" (some rows replaced). `shape` is
    logical, outputs before inputs; with stacked experts it has three axes and rows count
    through all experts; of a convolution all axes but the first are inputs. `pairs` are the
    factors, that with the rows first; `vectors` are the other stored tensors by their part in
    the arithmetic; `stored` is a whole weight that stands in the base's place, before anything
    is added. `expert` and `first` say where in stacked factors the weight begins, where the
    base stores apart what its adapter has in one.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    scale: float = 1.0
    pairs: tuple[tuple[Factor, Factor], ...] = ()
    vectors: Mapping[str, TensorSpec] = field(default_factory=dict)
    stored: Factor | None = None
    tokens: tuple[int, ...] = ()
    expert: int = 0
    first: int = 0

    @property
    def rank(self) -> int:
        """Rank of the update, 0 where it has none."""
        return self.pairs[0][0].rank if self.pairs else 0

    @property
    def needs_base(self) -> bool:
        """Whether the base's own rows matter; where not, they need not be read."""
        return self.stored is None

    @property
    def parts(self) -> tuple[TensorSpec, ...]:
        """Every tensor of the adapter that takes part."""
        factors = (factor.spec for pair in self.pairs for factor in pair)
        stored = (self.stored.spec,) if self.stored else ()
        return (*stored, *factors, *self.vectors.values())

    @property
    def rows(self) -> int:
        """Number of logical rows."""
        return self.shape[0] if len(self.shape) == 1 else prod(self.shape[:-1])

    @property
    def outputs(self) -> int:
        """Number of logical rows of one expert, or of all where none are stacked."""
        return self.shape[-2] if len(self.shape) > 1 else self.shape[0]

    @property
    def width(self) -> int:
        """Length of a logical row; a bias has rows of one number."""
        return self.shape[-1] if len(self.shape) > 1 else 1


def needed(update: Update, rows: Rows) -> tuple[Slice, ...]:
    """Slices of the adapter's tensors that `rows` of the merged weight need."""
    _check_rows(update, rows)
    return tuple(part for group in _wanted(update, rows) for part in group)


def merged_rows(
    update: Update, rows: Rows, base_rows: Array | None, arrays: Sequence[Array]
) -> Floats:
    """Rows of the merged weight in single precision, from those of the base and of `needed`.

    `base_rows` is outputs by inputs, whichever way the base is stored; None will do where
    the update says that it does not need them. Of a bias, numbers come as they were given:
    one axis.
    """
    _check_rows(update, rows)
    groups = list(_wanted(update, rows))
    if sum(map(len, groups)) != len(arrays):
        raise ValueError(f"{update.name} needs {sum(map(len, groups))} arrays, got {len(arrays)}")
    shape = (len(rows), update.width)
    if base_rows is not None and base_rows.size != prod(shape) and update.needs_base:
        raise ValueError(f"{update.name} needs base rows {shape}, got {base_rows.shape}")
    source = iter(arrays)
    pieces = iter([[next(source) for _ in group] for group in groups])
    # What is infinite or not a number on disk stays so, without a warning about it.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        merged = _merge(update, rows, base_rows, pieces)
    return merged.reshape(-1) if len(update.shape) == 1 else merged


def _wanted(update: Update, rows: Rows) -> Iterator[tuple[Slice, ...]]:
    """Slices by part, in the order in which `_merge` takes them."""
    if not len(rows):
        return
    vectors = update.vectors
    experts = _by_expert(update, rows)
    if update.stored is not None:
        for expert, chosen in experts.items():
            yield update.stored.slices(_inner(update, rows, chosen), expert)
    for part in _WHOLE:
        if part in vectors:
            yield (Slice(vectors[part]),)
    for part in _BY_OUTPUT:
        if part in vectors:
            yield row_slices(vectors[part], 1, rows)
    for expert, chosen in experts.items() if update.pairs else ():
        inner = _inner(update, rows, chosen)
        for left, right in update.pairs:
            yield left.slices(inner, expert)
            yield right.slices(range(right.size), expert)
    replaced = _replaced(update, rows)
    if replaced:
        yield row_slices(vectors["tokens"], update.width, tuple(replaced.values()))


def _merge(
    update: Update, rows: Rows, base_rows: Array | None, pieces: Iterator[Sequence[Array]]
) -> Floats:
    shape = (len(rows), update.width)
    if not len(rows):
        return np.zeros(shape, np.float32)
    vectors = update.vectors
    if update.stored is not None:
        merged: Floats = np.empty(shape, np.float32)
        for expert, chosen in _by_expert(update, rows).items():
            inner = _inner(update, rows, chosen)
            merged[chosen] = update.stored.matrix(inner, next(pieces), expert)
    elif base_rows is not None:
        merged = as_float32(base_rows).reshape(shape)
    else:
        raise ValueError(f"{update.name} cannot be merged without rows of the base")
    whole = {part: _flat(next(pieces)[0]) for part in _WHOLE if part in vectors}
    own = {
        part: np.concatenate([_flat(array) for array in next(pieces)])[:, None]
        for part in _BY_OUTPUT
        if part in vectors
    }
    if update.pairs:
        merged = merged + _change(update, rows, whole, pieces)
    if "magnitude" in own:
        lengths = np.linalg.norm(merged, axis=1, keepdims=True)
        merged = (merged * (own["magnitude"] / lengths)).astype(np.float32)
    if "by_output" in own:
        merged = merged * own["by_output"]
    if "by_input" in whole:
        merged = merged * whole["by_input"]
    if "added" in own:
        scaled: Floats = own["added"] * np.float32(update.scale)
        merged = merged + scaled
    replaced = _replaced(update, rows)
    if replaced:
        merged = merged.copy()
        found = np.concatenate([_flat(array) for array in next(pieces)])
        merged[list(replaced)] = found.reshape(-1, update.width)
    return merged


def _change(
    update: Update, rows: Rows, whole: Mapping[str, Floats], pieces: Iterator[Sequence[Array]]
) -> Floats:
    """The scaled product of the factors, expert by expert."""
    scale = np.float32(update.scale)
    if "alpha" in whole:
        scale = np.float32(whole["alpha"][0] / max(update.rank, 1))
    change = np.empty((len(rows), update.width), np.float32)
    for expert, chosen in _by_expert(update, rows).items():
        inner = _inner(update, rows, chosen)
        product: Floats | None = None
        for left, right in update.pairs:
            tall = left.matrix(inner, next(pieces), expert)
            wide = right.matrix(range(right.size), next(pieces), expert)
            if "diagonal" in whole:
                wide = wide * whole["diagonal"]
            product = tall @ wide.T if product is None else product * (tall @ wide.T)
        change[chosen] = product
    return change * scale


def _by_expert(update: Update, rows: Rows) -> dict[int, list[int]]:
    """Positions among `rows` by the expert they belong to."""
    groups: dict[int, list[int]] = {}
    for position, row in enumerate(rows):
        groups.setdefault(update.expert + row // update.outputs, []).append(position)
    return groups


def _inner(update: Update, rows: Rows, chosen: list[int]) -> tuple[int, ...]:
    """The chosen rows counted inside their expert."""
    return tuple(update.first + rows[position] % update.outputs for position in chosen)


def _replaced(update: Update, rows: Rows) -> dict[int, int]:
    """Positions among `rows` that the adapter replaces, and where it stores them."""
    stored = {token: i for i, token in enumerate(update.tokens)}
    return {position: stored[row] for position, row in enumerate(rows) if row in stored}


def _flat(array: Array) -> Floats:
    return as_float32(array).reshape(-1)


def _check_rows(update: Update, rows: Rows) -> None:
    if len(rows) and (min(rows) < 0 or max(rows) >= update.rows):
        worst = max(rows) if max(rows) >= update.rows else min(rows)
        what = message("cause.slice.row", number=worst)
        raise SliceOutside(tensor=update.name, shape=list(update.shape), what=what)
