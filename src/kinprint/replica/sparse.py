"""Weight files of true length that take almost no room: a header, a few vectors, holes.

The header is byte for byte what the safetensors library would write, so every reader sees
an ordinary shard; a file system hands out zeros for the parts that were never written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kinprint import text
from kinprint.errors import BadOption
from kinprint.replica.layout import ITEM_BYTES, Slot

PROBE_BYTES = 64 << 20
"""Length of the file that shows whether a file system knows holes."""


def disk_order(slots: Sequence[Slot]) -> list[Slot]:
    """Tensors in the order in which safetensors stores them: wide types first, then by name.

    Norms lie where the model has them, although a replica's own are wider.
    """

    def width(slot: Slot) -> int:
        return ITEM_BYTES["BF16" if slot.role else slot.dtype]

    return sorted(slots, key=lambda slot: (-width(slot), slot.name))


def header(slots: Sequence[Slot], metadata: Mapping[str, str]) -> bytes:
    """The opening bytes of a file that holds `slots`: length, JSON, padding to eight bytes."""
    table: dict[str, object] = {"__metadata__": dict(metadata)}
    stop = 0
    for slot in disk_order(slots):
        start, stop = stop, stop + slot.nbytes
        table[slot.name] = {
            "dtype": slot.dtype,
            "shape": list(slot.shape),
            "data_offsets": [start, stop],
        }
    text = json.dumps(table, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write_sparse(
    path: Path, slots: Sequence[Slot], values: Mapping[str, bytes], metadata: Mapping[str, str]
) -> None:
    """Write a safetensors file of full length in which only `values` take room."""
    opening = header(slots, metadata)
    with path.open("wb") as file:
        file.write(opening)
        file.truncate(len(opening) + sum(slot.nbytes for slot in slots))
        at = len(opening)
        for slot in disk_order(slots):
            if slot.name in values:
                if len(values[slot.name]) != slot.nbytes:
                    raise AssertionError(f"{slot.name} takes {slot.nbytes} bytes")
                file.seek(at)
                file.write(values[slot.name])
            at += slot.nbytes


def disk_bytes(path: Path) -> int:
    """Bytes that a file or all files in a folder take on disk, holes left out."""
    paths = path.rglob("*") if path.is_dir() else [path]
    found = [p.stat() for p in paths if p.is_file()]
    # Windows does not count blocks; there a file is taken to be as large as it is long.
    return sum(getattr(stat, "st_blocks", -(-stat.st_size // 512)) * 512 for stat in found)


def full_bytes(path: Path) -> int:
    """Length of all files in a folder, holes counted."""
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def require_holes(folder: Path) -> None:
    """Refuse a folder whose file system would store every zero.

    Found out with a small file now, not with a full disk later.
    """
    probe = folder / ".replica-probe"
    try:
        with probe.open("wb") as file:
            file.truncate(PROBE_BYTES)
        dense = disk_bytes(probe) > PROBE_BYTES // 2
    finally:
        probe.unlink(missing_ok=True)
    if dense:
        cause = text.message("cause.replica.no-holes")
        raise BadOption(option="folder", value=folder, cause=cause)
