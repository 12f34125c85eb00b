"""PyTorch's files from before version 1.6: pickles one after the other, then the numbers.

The layout (`_legacy_save` in torch/serialization.py): a magic number, the protocol's
number, a dictionary about the machine, the saved value and the list of storage keys, each
a pickle; then, in the list's order, each storage as a 64-bit count of its elements and the
elements. Where a storage lies follows from the sizes of those before it.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, cast

from kinprint.reader.formats.torch.pickles import load, shown
from kinprint.reader.formats.torch.records import TorchNames
from kinprint.reader.formats.torch.window import Window, bad_archive
from kinprint.reader.formats.torch.zip import Place

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
LARGEST = 64 << 20


def read_legacy(window: Window) -> tuple[object, dict[str, Place]]:
    """The saved value, and the places of its storages by key."""
    path = window.view.path
    window.limit += LARGEST
    window.seek(0)
    stream = cast("BinaryIO", window)
    if load(stream, path, TorchNames()) != MAGIC:
        raise bad_archive(path, "cause.torch.other-pickle")
    protocol = load(stream, path, TorchNames())
    if protocol != PROTOCOL:
        raise bad_archive(path, "cause.torch.unknown-version")
    system = load(stream, path, TorchNames())
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise bad_archive(path, "cause.torch.unknown-order")
    names = TorchNames()
    value = load(stream, path, names)
    keys = load(stream, path, TorchNames())
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise bad_archive(path, "cause.torch.no-storages")
    return value, _places(window, keys, names)


def _places(window: Window, keys: list[str], names: TorchNames) -> dict[str, Place]:
    view = window.view
    places: dict[str, Place] = {}
    position = window.tell()
    for key in keys:
        record = names.storages.get(key)
        if record is None or key in places:
            raise bad_archive(view.path, "cause.torch.stray-storage", storage=shown(key))
        if not places and position + 8 <= view.size:
            # The first count is at hand and shows that sizes mean what they seem to.
            (count,) = struct.unpack("<q", window.read(8))
            if count != record.numel:
                raise bad_archive(view.path, "cause.torch.other-storage-size")
        places[key] = Place(position + 8, record.nbytes)
        position += 8 + record.nbytes
    if position != view.size:
        raise bad_archive(view.path, "cause.torch.other-end", expected=position, size=view.size)
    return places
