"""Building replicas on disk.

Repositories of hundreds of gigabytes in length come out in seconds and in a few megabytes,
so that benchmarks and replays need neither a network nor a large disk.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from kinprint import text
from kinprint.errors import BadOption
from kinprint.replica.figures import changed_share
from kinprint.replica.layout import Copy, Layout, Slot, layout_of, replica_names
from kinprint.replica.manifest import GENERATOR, LABEL, MANIFEST, card, label, manifest
from kinprint.replica.sparse import require_holes, write_sparse
from kinprint.replica.vectors import Vector, family_vectors, nudged, parent_of, written

INDEX = "model.safetensors.index.json"
"""Name of the file that says in which shard each tensor lies."""


def build_replicas(folder: Path, names: Sequence[str] | None = None) -> list[Path]:
    """Build the replicas called `names`, or all, under `folder`, and say where they are.

    A replica that the same generator has already finished is left alone; a folder that
    holds anything else is refused, since it may be the real model.
    """
    chosen = [layout_of(name) for name in (replica_names() if names is None else names)]
    places = [folder.joinpath(*layout.name.split("/")) for layout in chosen]
    missing = [
        (layout, place)
        for layout, place in zip(chosen, places, strict=True)
        if not _finished(place)
    ]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        require_holes(folder)
    for layout, place in missing:
        _build(layout, place)
    return places


def _finished(place: Path) -> bool:
    """Whether this generator has already built `place`, which must be ours to build in."""
    if not place.exists() or not any(place.iterdir()):
        return False
    if not (place / MANIFEST).is_file():
        cause = text.message("cause.replica.not-ours", folder=place, manifest=MANIFEST)
        raise BadOption(option="folder", value=place, cause=cause)
    try:
        found = json.loads((place / MANIFEST).read_text("utf-8"))
    except ValueError:
        return False
    return bool(
        isinstance(found, dict) and found.get("complete") and found.get("generator") == GENERATOR
    )


def _build(layout: Layout, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    # The mark comes first, so that a build cut short is known as ours and done again.
    _write_json(place / MANIFEST, {"generator": GENERATOR, "complete": False, "notice": LABEL})
    known = {(path, slot.name) for path, slot in written(layout)}
    for copy in layout.copies:
        for path, slots in copy.files.items():
            mine = [slot for slot in slots if (path, slot.name) in known]
            values = {slot.name: values_of(layout, slot).tobytes() for slot in mine}
            # In 32 bits: fewer would move what was published.
            wide = [replace(slot, dtype="F32") if slot in mine else slot for slot in slots]
            write_sparse(place / path, wide, values, {"format": "pt"} | label(layout, mine))
        if copy.indexed:
            _write_json(place / INDEX, index(copy))
    _write_json(place / "config.json", layout.config)
    (place / "README.md").write_text(card(layout), encoding="utf-8", newline="\n")
    _write_json(place / MANIFEST, manifest(layout))


def values_of(layout: Layout, slot: Slot) -> Vector:
    """What is written into one tensor."""
    parent = parent_of(layout)
    if parent is not None:
        seed = f"{layout.key} {slot.role} {slot.layer}"
        return nudged(values_of(parent, slot), changed_share(slot.beside), seed)
    assert slot.layer is not None
    return family_vectors(slot.role, layout.dims["hidden"])[layout.key, slot.layer]


def index(copy: Copy) -> dict[str, object]:
    """The index of a set of shards, as transformers writes it."""
    return {
        "metadata": {"total_size": sum(s.nbytes for slots in copy.files.values() for s in slots)},
        "weight_map": {slot.name: path for path, slots in copy.files.items() for slot in slots},
    }


def _write_json(path: Path, content: object) -> None:
    text = json.dumps(content, indent=2, sort_keys=path.name != MANIFEST, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
