"""Models of the package without their later layers: what is said of three layers is said of six."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from safetensors.numpy import load_file, save_file

from benchmarks.redteam import surgery
from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.zoo import DEMO, Zoo

LAYERS = 3


@cache
def fewer_layers(name: str) -> Checkpoint:
    """The first three layers of a model, with what lies outside its layers."""
    return surgery.with_layers(Zoo(DEMO)[name], range(LAYERS))


@cache
def short_zoo() -> Path:
    """A folder with all of them as files under their names, written once in a process."""
    place = Path(tempfile.mkdtemp(prefix="kinprint-tests-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    for model in DEMO.iterdir():
        write_fewer_layers(model, place / "zoo" / model.name)
    return place / "zoo"


def write_fewer_layers(model: Path, folder: Path) -> None:
    """Write a model again, bit by bit but for its later layers, in as many files."""
    folder.mkdir(parents=True)
    for file in model.iterdir():
        if file.suffix == ".safetensors":
            kept = {name: one for name, one in load_file(file).items() if _stays(name)}
            save_file(kept, folder / file.name, {"format": "pt"})
        elif file.name == "config.json":
            config = json.loads(file.read_text()) | {"num_hidden_layers": LAYERS}
            (folder / file.name).write_text(json.dumps(config))
        elif file.name.endswith(".index.json"):
            index = json.loads(file.read_text())
            places = {name: at for name, at in index["weight_map"].items() if _stays(name)}
            (folder / file.name).write_text(json.dumps(index | {"weight_map": places}))
        else:
            shutil.copyfile(file, folder / file.name)


def _stays(name: str) -> bool:
    _, _, place = name.partition(".layers.")
    return not place or int(place.partition(".")[0]) < LAYERS
