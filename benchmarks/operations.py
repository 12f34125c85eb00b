"""What was done to a model, told from two checkpoints: pairs with a known truth, and what is said.

    python -m benchmarks.operations [ZOO]

Parents and children of the zoo, and children that are made here from its roots. The command fails
where an operation is named that was not done; one that is left undecided is counted.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from msgspec import Struct

import kinprint
from benchmarks.redteam import packed, relabelling, storage, surgery
from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.zoo import Zoo
from kinprint import Operation

Rng = np.random.Generator
_TRAINED = {Operation.FINETUNE, Operation.CONTINUED, Operation.TRAINED}


class Truth(Struct, frozen=True):
    """What must be said: operations, and the format, bits or rank of one of them.

    `may` are operations that may be said beside them.
    """

    must: frozenset[Operation]
    may: frozenset[Operation] = frozenset()
    format: str | None = None
    bits: int | None = None
    rank: int | None = None

    def faults(self, said: kinprint.Diff) -> Iterator[str]:
        """What is missing, and what is wrong."""
        kinds = {one.kind for one in said.operations}
        for kind in sorted(self.must - kinds):
            yield f"missing {kind}"
        for kind in sorted(kinds - self.must - self.may):
            yield f"wrong {kind}"
        for name in ("format", "bits", "rank"):
            wanted = getattr(self, name)
            if wanted is not None and wanted not in {getattr(one, name) for one in said.operations}:
                yield f"wrong {name}"


def truth(*must: Operation, may: set[Operation] | None = None, **more: object) -> Truth:
    return Truth(frozenset(must), frozenset(may or ()), **more)  # type: ignore[arg-type]


_ZOO: dict[tuple[str, str], Truth] = {
    ("base-a", "a-sft"): truth(Operation.FINETUNE),
    ("base-a", "a-cpt"): truth(Operation.CONTINUED),
    ("base-b", "b-cpt"): truth(Operation.CONTINUED),
    ("qwen-i", "qwen-i-cpt"): truth(Operation.CONTINUED),
    ("base-a", "a-extvocab"): truth(Operation.EXPANDED_VOCABULARY, may=_TRAINED),
    ("base-a", "a-newvocab"): truth(Operation.TRANSPLANTED_VOCABULARY, may=_TRAINED),
    ("base-a", "a-reattn"): truth(Operation.REPLACED, may=_TRAINED),
    ("base-a", "a-normsonly"): truth(Operation.REPLACED, may={Operation.CHANGED}),
    ("base-a", "a-depthup"): truth(Operation.EXPANDED_DEPTH, may=_TRAINED),
    ("base-a", "a-depthprune"): truth(Operation.PRUNED_DEPTH, may=_TRAINED),
    ("base-a", "a-ffnprune"): truth(Operation.PRUNED_WIDTH, may=_TRAINED),
    ("base-a", "a-hidprune"): truth(Operation.PRUNED_WIDTH, may=_TRAINED),
    ("base-a", "a-upcycled"): truth(Operation.UPCYCLED, may=_TRAINED),
    ("a-sft", "a-permuted"): truth(Operation.PERMUTED),
    ("base-a", "a-permuted"): truth(Operation.PERMUTED, Operation.FINETUNE),
    ("a-sft", "a-rotated"): truth(Operation.ROTATED),
    ("base-a", "a-rotated"): truth(Operation.ROTATED, may=_TRAINED),
    ("base-a", "base-b"): truth(),
    ("base-a", "tie-a"): truth(),
    ("base-a", "a-distilled"): truth(),
}  # fmt: skip

Maker = Callable[[Checkpoint, Rng], Checkpoint]


def _lora(rank: int) -> Maker:
    return lambda model, rng: with_adapter(model, rng, rank)


def with_adapter(model: Checkpoint, rng: Rng, rank: int, size: float = 0.02) -> Checkpoint:
    """An update of low rank added to every matrix of the layers, `size` of what is there."""
    new: dict[str, Array] = {}
    for name, values in model.tensors.items():
        if values.ndim < 2 or ".layers." not in name:
            continue
        update = rng.normal(size=(len(values), rank)) @ rng.normal(size=(rank, values.shape[1]))
        update *= size * np.linalg.norm(values) / np.linalg.norm(update)
        new[name] = np.asarray(values + update, np.float32)
    return model.changed(new)


def with_noise(model: Checkpoint, rng: Rng, size: float = 0.02) -> Checkpoint:
    """Independent errors added to every tensor, `size` of its own spread."""
    return model.changed(
        {
            name: np.asarray(
                values + rng.normal(size=values.shape) * values.std() * size, np.float32
            )
            for name, values in model.tensors.items()
        }
    )


def _permuted(model: Checkpoint, rng: Rng) -> Checkpoint:
    width = model.geometry["hidden_size"]
    moved = relabelling.permute_channels(model, rng.permutation(width), np.ones(width))
    return relabelling.shuffle_units(moved, rng, rescale=False)


def _quantized(format: str, bits: int) -> Truth:
    return truth(Operation.QUANTIZED, may={Operation.FROZEN}, format=format, bits=bits)


def _cast(format: str, bits: int) -> Truth:
    return truth(Operation.CAST, format=format, bits=bits)


def _gguf(kind: str) -> Maker:
    return lambda model, _: storage.as_gguf(model, kind)


def _layers(*layers: int) -> Maker:
    return lambda model, _: surgery.with_layers(model, layers)


MADE: dict[str, tuple[Maker, Truth]] = {
    "cast to float16": (lambda m, _: storage.cast(m, np.float16), _cast("F16", 16)),
    "cast to float32": (lambda m, _: storage.cast(m, np.float32), _cast("F32", 32)),
    "fp8, a scale for a tensor": (lambda m, _: packed.as_fp8_tensor(m), _quantized("fp8", 8)),
    "fp8, a scale for a block": (lambda m, _: storage.as_fp8(m), _quantized("fp8", 8)),
    "int8": (lambda m, _: storage.as_int8(m), _quantized("int8", 8)),
    "GPTQ": (lambda m, _: packed.as_gptq(m), _quantized("GPTQ", 4)),
    "AWQ": (lambda m, _: packed.as_awq(m), _quantized("AWQ", 4)),
    "NF4": (lambda m, _: packed.as_nf4(m), _quantized("NF4", 4)),
    "MXFP4": (lambda m, _: packed.as_mxfp4(m), _quantized("MXFP4", 4)),
    "GGUF Q8_0": (_gguf("Q8_0"), _quantized("Q8_0", 8)),
    "GGUF Q4_0": (_gguf("Q4_0"), _quantized("Q4_0", 4)),
    "GGUF Q4_1": (_gguf("Q4_1"), _quantized("Q4_1", 4)),
    "GGUF Q5_0": (_gguf("Q5_0"), _quantized("Q5_0", 5)),
    "GGUF Q5_1": (_gguf("Q5_1"), _quantized("Q5_1", 5)),
    "GGUF MXFP4": (_gguf("MXFP4"), _quantized("MXFP4", 4)),
    "GGUF BF16": (_gguf("BF16"), truth()),
    "GGUF F16": (_gguf("F16"), _cast("F16", 16)),
    "fused": (lambda m, _: storage.fused(m), truth()),
    "renamed": (lambda m, _: storage.renamed(m, True), truth()),
    "noise": (lambda m, r: with_noise(m, r), truth(Operation.NOISE)),
    "noise of a tenth": (lambda m, r: with_noise(m, r, 0.1), truth(Operation.NOISE)),
    **{
        f"adapter of rank {rank}": (
            _lora(rank),
            truth(Operation.ADAPTER, may={Operation.FROZEN}, rank=rank),
        )
        for rank in (1, 2, 4, 8, 16, 32, 64)
    },
    "layers removed": (_layers(0, 1, 4, 5), truth(Operation.PRUNED_DEPTH)),
    "layers repeated": (_layers(0, 1, 2, 3, 2, 3, 4, 5), truth(Operation.EXPANDED_DEPTH)),
    "units removed": (
        lambda m, r: surgery.with_some_units(m, r, 224),
        truth(Operation.PRUNED_WIDTH),
    ),
    "channels removed": (
        lambda m, r: surgery.with_some_channels(m, r, 96),
        truth(Operation.PRUNED_WIDTH),
    ),
    "heads removed": (lambda m, _: surgery.without_heads(m, (0,)), truth(Operation.PRUNED_HEADS)),
    "2:4 pruned": (
        lambda m, _: surgery.masked(m, None),
        truth(Operation.PRUNED_NUMBERS, may={Operation.FROZEN}),
    ),
    "upcycled": (
        lambda m, r: surgery.upcycled(m, r, 4, 0.0, False),
        truth(Operation.UPCYCLED),
    ),
    "permuted": (_permuted, truth(Operation.PERMUTED)),
    "laundered": (relabelling.launder, truth(Operation.ROTATED)),
}


def run(zoo: Zoo) -> Iterator[tuple[str, kinprint.Diff, list[str]]]:
    """Every pair: what it is, what was said, and what is wrong about it."""
    for (parent, child), wanted in _ZOO.items():
        if {parent, child} <= zoo.names:
            found = kinprint.diff(zoo.folder / parent, zoo.folder / child)
            yield f"{parent} → {child}", found, list(wanted.faults(found))
    with tempfile.TemporaryDirectory() as folder:
        for at, (name, (make, wanted)) in enumerate(MADE.items()):
            yield name, *made(make, wanted, zoo.root(0), at, Path(folder, str(at)))


def made(
    make: Maker, wanted: Truth, parent: Checkpoint, seed: int, folder: Path
) -> tuple[kinprint.Diff, list[str]]:
    """What is said of a child that is made now, and what is wrong about it."""
    child = make(parent, np.random.default_rng(seed))
    for model, name in ((parent, "parent"), (child, "child")):
        (folder / name).mkdir(parents=True)
        model.save(model, folder / name)
    found = kinprint.diff(folder / "parent", folder / "child")
    return found, list(wanted.faults(found))


def main() -> int:
    zoo = Zoo(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    right = wrong = undecided = 0
    for name, found, faults in run(zoo):
        said = ", ".join(one.kind for one in found.operations) or "–"
        print(f"{name:32} {said:60} {'; '.join(faults)}", flush=True)
        right += not faults
        wrong += any(fault.startswith("wrong") for fault in faults)
        undecided += bool(faults) and not any(fault.startswith("wrong") for fault in faults)
    print(f"{right} right, {undecided} undecided, {wrong} wrong")
    return 1 if wrong or right < 0.95 * (right + undecided) else 0


if __name__ == "__main__":
    raise SystemExit(main())
