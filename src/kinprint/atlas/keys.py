"""What models are searched by: short sketches that are alike where models are. They decide nothing.

A key is made of five sketches. The first four are random projections, the same for all models:
every number is added, with a sign, to one place of the sketch, and what it is called chooses both.

- *rows* of tensors, by layer, tensor and number, as they are stored: most descendants keep these;
- *tokens*: rows of the embedding by spelling, whatever became of layers;
- *gains* of norms by layer and channel;
- *gram*: the products of the embedding rows of tokens with one another, which neither a turn of the
  residual stream nor another order or number of channels changes;
- *spectra*: quantiles, over depth, of what no relabelling changes: effective gains, lengths of
  units and cosines of their ends, singular values of the query-key and value-output products of
  heads.

The first two stages differ in length alone: of the first all models are looked at, of the second
the best of these. Sketches of models with other widths, depths and vocabularies have equal lengths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.lineage.screening import Digest, digest

Key = NDArray[np.int8]

SKETCHES = ("rows", "tokens", "gains", "gram", "spectra")
FIRST = (96, 96, 64, 136, 120)
"""Numbers of each sketch in the first stage: 512 bytes."""
SECOND = (4096, 4096, 2048, 6024, 120)
"""The same in the second: 16 kilobytes."""
_DEPTHS, _QUANTILES = 4, 6  # places over depth, and numbers at each, of the five kinds of spectra
_HEADS = 8  # of a layer whose products are decomposed
_BLOCK = 2048  # keys that are looked at at once


class TowerKeys(Struct, frozen=True):
    """What one tower of a model is searched by.

    Attributes
    ----------
    tower
        Which it is; "" is the text model.
    width, depth
        Length of its residual stream, and how many layers it has.
    first, second
        The sketches of both stages, one after another; all zero where a model has nothing to give.
    """

    tower: str
    width: int
    depth: int
    first: Key
    second: Key


def keys_of(sample: Sample) -> TowerKeys:
    """Reduce a tower to what it is searched by."""
    prepared = Prepared(sample)
    known = digest(prepared)
    rows = [f"{tensor} {number}" for tensor, number in known.labels]
    numbers = (
        _labelled(f"rows {sample.width}", rows, known.rows),
        _labelled(f"tokens {sample.width}", known.tokens, known.embedding),
        _labelled(f"gains {sample.width}", *_gains(prepared)),
        _gram(known),
    )
    spectra = _steps(np.concatenate(list(_spectra(prepared))))
    first, second = (
        np.concatenate([*(_sketch(*one, count) for one, count in pairs), spectra])
        for pairs in (zip(numbers, lengths[:4], strict=True) for lengths in (FIRST, SECOND))
    )
    return TowerKeys(sample.tower, sample.width, sample.depth, first, second)


def likeness(query: Key, keys: NDArray[np.int8], lengths: Sequence[int]) -> Floats:
    """How alike a key is to each of many, by sketch: keys × sketches.

    Cosines of the first four, zero where either model has nothing to give; for spectra one minus
    the mean difference, in steps of a factor e.
    """
    found = np.zeros((len(keys), len(lengths)), np.float32)
    stops = np.cumsum(lengths)
    for at, stop in enumerate(stops):
        own = query[stop - lengths[at] : stop].astype(np.float32)
        theirs = keys[:, stop - lengths[at] : stop]
        for start in range(0, len(keys), _BLOCK):
            block = theirs[start : start + _BLOCK].astype(np.float32)
            if SKETCHES[at] == "spectra":
                both = (block != 0) & (own != 0)
                apart = np.abs(block - own) * both
                mean = apart.sum(axis=1) / np.maximum(both.sum(axis=1), 1) / _STEPS
                values = np.where(both.any(axis=1), np.maximum(1.0 - mean, 0.0), 0.0)
            else:
                sizes = np.sqrt(np.square(block).sum(axis=1) * np.square(own).sum())
                values = block @ own / np.maximum(sizes, 1.0)
            found[start : start + _BLOCK, at] = values
    return found


_STEPS = 16.0  # of a spectrum, to a factor of e


def _steps(logarithms: Floats) -> Key:
    """Logarithms in steps that fit into a byte; zero stands for nothing."""
    known = np.isfinite(logarithms) & (logarithms != 0)
    stepped = np.clip(np.round(np.where(known, logarithms, 0.0) * _STEPS), -127, 127)
    return np.where(known & (stepped == 0), 1, stepped).astype(np.int8)


Named = tuple[NDArray[np.uint64], Floats]
"""Numbers, and what each is called, as a hash."""


def _sketch(names: NDArray[np.uint64], numbers: Floats, count: int) -> Key:
    """The sum of numbers by places that their names choose, each with a sign; its direction.

    Sums of two models have, on average, the cosine of their numbers (Charikar, Chen and
    Farach-Colton 2002).
    """
    places = (names >> np.uint64(1)) % np.uint64(count)
    signed = np.where(names & np.uint64(1), numbers, -numbers)
    sums = np.bincount(places.reshape(-1).astype(np.int64), signed.reshape(-1), count)
    top = float(np.abs(sums).max(initial=0.0))
    return np.round(sums * (127.0 / top if top > 0 else 0.0)).astype(np.int8)


def _labelled(name: str, labels: Iterable[str | bytes], rows: Floats) -> Named:
    """Numbers of rows, called by the label of their row and the number of their column."""
    own = _hashed(name, labels)
    columns = _mixed(np.arange(rows.shape[1], dtype=np.uint64))
    return _mixed(own[:, None] + columns[None]), rows


def _gram(known: Digest) -> Named:
    """The products of the rows of tokens with one another, each called by both."""
    rows = known.embedding
    if len(rows) < 2:
        return np.empty(0, np.uint64), np.empty(0, np.float32)
    rows = rows - rows.mean(axis=0)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    own = _hashed("gram", known.tokens)
    one, other = np.triu_indices(len(rows), 1)
    return _mixed(own[one] + own[other]), (rows @ rows.T)[one, other]


def _hashed(name: str, labels: Iterable[str | bytes]) -> NDArray[np.uint64]:
    """A number for each label, the same on every machine."""
    raw = b"".join(
        blake2b(label.encode() if isinstance(label, str) else label, key=name.encode()).digest()[:8]
        for label in labels
    )
    return np.frombuffer(raw, "<u8").astype(np.uint64)


def _mixed(given: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers whose every bit depends on all bits of the given ones (SplitMix64)."""
    mixed = given + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)


def _gains(model: Prepared) -> tuple[list[str], Floats]:
    """Gains of norms that are as wide as the model, centred and of length one."""
    found = {
        place: gain.astype(np.float32) - gain.mean(dtype=np.float32)
        for place, gain in model.sample.norms.items()
        if gain.shape == (model.width,) and np.isfinite(gain).all()
    }
    found = {place: gain for place, gain in found.items() if np.linalg.norm(gain) > 1e-6}
    if not found:
        return [], np.empty((0, model.width), np.float32)
    rows = np.stack([gain / np.linalg.norm(gain) for gain in found.values()])
    return [f"{role!s} {layer}" for role, layer in found], rows


def _spectra(model: Prepared) -> Iterator[Floats]:
    """Logarithms of what no relabelling changes, by kind: places over depth × quantiles."""
    sample = model.sample
    units: dict[int, list[Floats]] = {}
    gains: dict[int, list[Floats]] = {}
    ends: dict[int, list[Floats]] = {}
    for (layer, _), part in [((layer, 0), one) for layer, one in sample.units.items()] + [
        *sample.experts.items()
    ]:
        gain = model.feed_forward_gain(layer)
        read = part.up * gain
        if not part.up.size or not part.down.size:
            continue
        lengths = np.linalg.norm(read, axis=1) * np.linalg.norm(part.down, axis=1)
        units.setdefault(layer, []).append(lengths)
        gains.setdefault(layer, []).append(np.sqrt(np.square(read).mean(axis=0)))
        if part.gate is not None and part.gate.size:
            gate = part.gate * gain
            both = np.abs((gate * read).sum(axis=1))
            both /= np.maximum(np.linalg.norm(gate, axis=1) * np.linalg.norm(read, axis=1), 1e-12)
            ends.setdefault(layer, []).append(both)
    matched: dict[int, list[Floats]] = {}
    written: dict[int, list[Floats]] = {}
    for layer, heads in sample.attention.items():
        gain = model.attention_gain(layer)
        if heads.q is not None and heads.k is not None:
            matched[layer] = list(_head_spectra(heads.q * gain, heads.k * gain))
        if heads.o is not None and heads.v is not None:
            written[layer] = list(_head_spectra(heads.o, heads.v * gain))
    for kind in (units, gains, ends, matched, written):
        yield _over_depth({layer: some for layer, some in kind.items() if some}, sample.depth)


def _head_spectra(each: Floats, shared: Floats) -> Iterator[Floats]:
    """Singular values of products of heads' rows with those of their group, of the first heads."""
    if not len(shared) or len(each) % len(shared):
        return
    size = len(each) // len(shared)
    for at in range(min(len(each), _HEADS)):
        # The product is as wide as the model; its singular values are those of a small one.
        one, other = (
            np.linalg.qr(rows.T.astype(np.float64)).R for rows in (each[at], shared[at // size])
        )
        product = one @ other.T if one.shape == other.shape else np.array([np.nan])
        if np.isfinite(product).all():
            yield np.linalg.svd(product, compute_uv=False).astype(np.float32)


def _over_depth(values: dict[int, list[Floats]], depth: int) -> Floats:
    """Quantiles at a few places over depth, from the layers nearest to each."""
    table = np.zeros((_DEPTHS, _QUANTILES), np.float32)
    layers = sorted(values)
    if not layers:
        return table.reshape(-1)
    for place in range(_DEPTHS):
        wanted = (place + 0.5) / _DEPTHS * max(depth, 1) - 0.5
        nearest = min(layers, key=lambda layer: abs(layer - wanted))
        all_values = np.concatenate(values[nearest])
        logs = np.log(np.maximum(all_values[np.isfinite(all_values)], 1e-12))
        if len(logs):
            table[place] = np.quantile(logs, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    return table.reshape(-1)
