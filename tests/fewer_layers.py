"""Models of the package with two layers and a thousand tokens, which tell as much as the whole."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from msgspec.structs import replace
from safetensors.numpy import load_file, save_file

from benchmarks.redteam import surgery
from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.layers import EMBEDDING
from benchmarks.redteam.zoo import DEMO, Zoo

LAYERS, TOKENS = 2, 1024


@cache
def fewer_layers(name: str, layers: int = LAYERS) -> Checkpoint:
    """The first layers of a model and its first tokens, with what lies outside both."""
    model = surgery.with_layers(Zoo(DEMO)[name], range(layers))
    files = {"tokenizer.json": _first_tokens(model.files["tokenizer.json"])}
    table = {EMBEDDING: model.tensors[EMBEDDING][:TOKENS]}
    return replace(model.changed(table, vocab_size=TOKENS), files=files)


@cache
def short_zoo(layers: int = LAYERS) -> Path:
    """A folder with all of them as files under their names, written once in a process."""
    place = Path(tempfile.mkdtemp(prefix="kinprint-tests-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    for model in DEMO.iterdir():
        _write(model, place / "zoo" / model.name, layers)
    return place / "zoo"


def _write(model: Path, folder: Path, layers: int) -> None:
    """Write a model again, bit by bit but for what it lacks, in as many files."""
    folder.mkdir(parents=True)
    for file in model.iterdir():
        if file.suffix == ".safetensors":
            kept = {
                name: one[:TOKENS] if name == EMBEDDING else one
                for name, one in load_file(file).items()
                if _stays(name, layers)
            }
            save_file(kept, folder / file.name, {"format": "pt"})
        elif file.name == "config.json":
            fewer = {"num_hidden_layers": layers, "vocab_size": TOKENS}
            (folder / file.name).write_text(json.dumps(json.loads(file.read_text()) | fewer))
        elif file.name == "tokenizer.json":
            (folder / file.name).write_bytes(_first_tokens(file.read_bytes()))
        elif file.name.endswith(".index.json"):
            index = json.loads(file.read_text())
            places = {name: at for name, at in index["weight_map"].items() if _stays(name, layers)}
            (folder / file.name).write_text(json.dumps(index | {"weight_map": places}))
        else:
            shutil.copyfile(file, folder / file.name)


def _stays(name: str, layers: int) -> bool:
    _, _, place = name.partition(".layers.")
    return not place or int(place.partition(".")[0]) < layers


def _first_tokens(tokenizer: bytes) -> bytes:
    """A tokenizer without the tokens beyond, and without the merges that make them."""
    told = json.loads(tokenizer)
    vocabulary = told["model"]["vocab"]
    kept = {token: at for token, at in vocabulary.items() if at < TOKENS}
    merges = [pair for pair in told["model"]["merges"] if {*pair, "".join(pair)} <= kept.keys()]
    told["model"] |= {"vocab": kept, "merges": merges}
    return json.dumps(told, ensure_ascii=False).encode()
