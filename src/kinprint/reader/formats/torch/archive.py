"""Weights saved by `torch.save`: their places in the file, without PyTorch and without trust.

Two formats, told apart by their first bytes: zip archives, and the older row of pickles.
In both a pickle describes tensors as views on storages; here the views become places.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

from kinprint.errors import BadPickle
from kinprint.reader.dtypes import PLAIN
from kinprint.reader.formats.torch.legacy import read_legacy
from kinprint.reader.formats.torch.pickles import load, shown
from kinprint.reader.formats.torch.records import TensorRecord, TorchNames
from kinprint.reader.formats.torch.state import named_tensors
from kinprint.reader.formats.torch.window import Window, bad_archive
from kinprint.reader.formats.torch.zip import LARGEST_PICKLE, Place, TorchZip
from kinprint.reader.formats.view import FileView
from kinprint.records import Header, TensorSpec

HEAD = 64 << 10
LARGEST_DIRECTORY = 16 << 20
# A view may repeat numbers (`expand`); beyond this many it is a bomb rather than a tensor.
MOST_REPEATED = 1 << 24


def parse_torch(view: FileView) -> Header:
    """Read which tensors a PyTorch file holds, running nothing that is in it.

    Costs two to four requests whatever the number of tensors: the start of the file, which
    tells the format and has the pickle or most of it, and the end, which has the directory.
    """
    window = Window(view, limit=LARGEST_DIRECTORY)
    window.want(0, HEAD)
    head = window.read(512)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        value, places = _read_zip(window)
    elif head[257:262] == b"ustar":
        raise bad_archive(view.path, "cause.torch.tar")
    elif head.startswith(b"\x80"):
        value, places = read_legacy(window)
    elif head.startswith(b"version https://git-lfs"):
        raise bad_archive(view.path, "cause.file.lfs-pointer")
    else:
        raise bad_archive(view.path, "cause.torch.neither")
    tensors = tuple(
        _placed(name, record, places, view.path)
        for name, record in named_tensors(value, view.path).items()
    )
    return Header("torch", tensors, extent=window.fetched)


def _read_zip(window: Window) -> tuple[object, dict[str, Place]]:
    path = window.view.path
    archive = TorchZip(window)
    pickle = archive.content("data.pkl", LARGEST_PICKLE)
    order = archive.content("byteorder", largest=16)  # absent before PyTorch 2.1
    if order not in (None, b"little"):
        raise bad_archive(path, "cause.file.big-endian")
    names = TorchNames()
    try:
        value = load(io.BytesIO(pickle or b""), path, names)
    except BadPickle:
        if archive.has("code/") or archive.has("constants.pkl"):
            raise bad_archive(path, "cause.torch.torchscript") from None
        raise
    return value, archive.storages(tuple(names.storages))


def _placed(name: str, record: TensorRecord, places: Mapping[str, Place], file: str) -> TensorSpec:
    """Where a tensor lies; what is not in row-major order keeps its strides."""
    storage = record.storage
    place = places.get(storage.key)
    if place is None:
        raise bad_archive(
            file, "cause.torch.no-storage", storage=shown(storage.key), tensor=shown(name)
        )
    if storage.nbytes > place.size:
        raise bad_archive(
            file,
            "cause.torch.short-storage",
            tensor=shown(name),
            needed=storage.nbytes,
            size=place.size,
        )
    size = PLAIN[record.dtype].size
    count = 1
    for length in record.shape:
        count *= length
    begin = place.start + storage.start
    if count == 0:
        return TensorSpec(name, record.dtype, record.shape, file, begin, 0)
    steps = zip(record.shape, record.strides, strict=True)
    extent = 1 + sum((length - 1) * stride for length, stride in steps)
    if (record.offset + extent) * size > storage.room:
        raise bad_archive(file, "cause.torch.beyond-storage", tensor=shown(name))
    if count > max(extent, MOST_REPEATED):
        raise bad_archive(
            file, "cause.torch.repeats", tensor=shown(name), count=count, extent=extent
        )
    return TensorSpec(
        name=name,
        dtype=record.dtype,
        shape=record.shape,
        file=file,
        offset=begin + record.offset * size,
        nbytes=extent * size,
        strides=None if _is_row_major(record) else record.strides,
    )


def _is_row_major(record: TensorRecord) -> bool:
    expected = 1
    for length, stride in zip(reversed(record.shape), reversed(record.strides), strict=True):
        if length != 1 and stride != expected:
            return False
        expected *= length
    return True
