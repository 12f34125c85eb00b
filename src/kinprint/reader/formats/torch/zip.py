"""PyTorch's zip archives (`torch.save` since 1.6): the pickle, and where each storage lies.

The archive is read as PyTorch writes it (caffe2/serialize/inline_container.cc): entries
`NAME/data.pkl`, `NAME/byteorder` and one `NAME/data/KEY` a storage, all stored without
compression. Data begins behind a local header whose length the directory does not tell;
PyTorch fills it up with an extra field "FB" so that data is aligned, and writes nothing
between the end of the data's descriptor and the next header. So where data begins follows
from where the next header begins, and the alignment is the proof. One local header is read
to see that PyTorch was the writer; any entry that does not fit is looked up in its own.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Sequence
from typing import IO, cast

from msgspec import Struct

from kinprint.errors import BadArchive
from kinprint.reader.formats.torch.pickles import shown
from kinprint.reader.formats.torch.window import Window, bad_archive

TAIL = 64 << 10
LARGEST_PICKLE = 64 << 20
DEFAULT_ALIGNMENT = 64
_LOCAL = struct.Struct("<4s22xHH")  # signature, lengths of name and extra field
_PADDING = b"FB"
_WIDE = 0xFFFFFFFF  # from here on, sizes and places take 64 bits
_NEAR = 1024  # the small entries that PyTorch writes next to the pickle


class Place(Struct, frozen=True):
    """Where the content of an entry lies in the file."""

    start: int
    size: int


class TorchZip:
    """An open archive: its small entries, and the places of its storages."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._path = window.view.path
        window.want(max(window.view.size - TAIL, 0), window.view.size)
        try:
            self._zip = zipfile.ZipFile(cast("IO[bytes]", window))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise self._bad("cause.torch.directory", detail=shown(str(error))) from None
        self._entries = sorted(self._zip.infolist(), key=lambda info: info.header_offset)
        self._check_entries()
        self.prefix = self._find_prefix()
        window.limit += LARGEST_PICKLE

    def _bad(self, key: str, /, **fields: object) -> BadArchive:
        return bad_archive(self._path, key, **fields)

    def _check_entries(self) -> None:
        """Refuse entries that lie outside the archive, on one another, or twice in it."""
        names: set[str] = set()
        end = 0
        for info in self._entries:
            if info.filename in names:
                raise self._bad("cause.torch.same-entry")
            names.add(info.filename)
            if info.header_offset < end:
                raise self._bad("cause.torch.overlap")
            end = info.header_offset + _LOCAL.size + info.compress_size
            if end > self._zip.start_dir:
                raise self._bad("cause.torch.beyond-archive")

    def _find_prefix(self) -> str:
        pickles = [
            info.filename
            for info in self._entries
            if info.filename.endswith("/data.pkl") and info.filename.count("/") == 1
        ]
        if len(pickles) != 1:
            raise self._bad("cause.torch.other-zip")
        return pickles[0].removesuffix("data.pkl")

    def has(self, name: str) -> bool:
        """Whether there is an entry, or a folder of entries, of that name."""
        full = self.prefix + name
        return any(info.filename.startswith(full) for info in self._entries)

    def content(self, name: str, largest: int) -> bytes | None:
        """What a small entry contains, checked by its checksum; None if there is none."""
        try:
            info = self._zip.getinfo(self.prefix + name)
        except KeyError:
            return None
        self._check_stored(info)
        if info.file_size > largest:
            raise self._bad("cause.torch.large-entry", name=name, size=info.file_size)
        header = _LOCAL.size + len(_raw_name(info)) + 4 + DEFAULT_ALIGNMENT
        stop = info.header_offset + header + info.file_size + 16
        self._window.want(info.header_offset, stop + (_NEAR if name == "data.pkl" else 0))
        start, _ = self._looked_up(info)
        self._window.seek(start)
        data = self._window.read(info.file_size)
        # torch.serialization.set_crc32_options(False) leaves zeros where checksums should be.
        if len(data) != info.file_size or (info.CRC and zlib.crc32(data) != info.CRC):
            raise self._bad("cause.torch.damaged-entry", name=name)
        return data

    def storages(self, keys: Sequence[str]) -> dict[str, Place]:
        """Places of the storages with these keys."""
        alignment = self._alignment()
        follows = [info.header_offset for info in self._entries[1:]] + [self._zip.start_dir]
        wanted = {f"{self.prefix}data/{key}": key for key in keys}
        places: dict[str, Place] = {}
        trusted: bool | None = None
        for info, follow in zip(self._entries, follows, strict=True):
            key = wanted.get(info.filename)
            if key is None:
                continue
            self._check_stored(info)
            start = _derived(info, follow, alignment)
            if trusted is None:
                trusted = (start, True) == self._looked_up(info)
            if start is None or not trusted:
                start, _ = self._looked_up(info)
            if start + info.file_size > follow:
                raise self._bad("cause.torch.storage-overlap", storage=shown(key))
            places[key] = Place(start, info.file_size)
        return places

    def _alignment(self) -> int:
        text = self.content(".storage_alignment", largest=16)
        if text is None:
            return DEFAULT_ALIGNMENT
        if not text.isdigit() or int(text) == 0:
            raise self._bad("cause.torch.odd-alignment")
        return int(text)

    def _looked_up(self, info: zipfile.ZipInfo) -> tuple[int, bool]:
        """Where an entry's data begins by its local header, and whether PyTorch wrote that."""
        self._window.seek(info.header_offset)
        head = self._window.read(_LOCAL.size)
        if len(head) == _LOCAL.size:
            mark, name, extra = _LOCAL.unpack(head)
            text = self._window.read(name + extra)
            named = text[:name] == _raw_name(info)
            if mark == b"PK\x03\x04" and named and len(text) == name + extra:
                start = info.header_offset + _LOCAL.size + name + extra
                return start, _PADDING in text[name : name + 32]
        raise self._bad("cause.torch.damaged-header", name=shown(info.filename))

    def _check_stored(self, info: zipfile.ZipInfo) -> None:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise self._bad("cause.torch.compressed")
        if info.flag_bits & 0x1:
            raise self._bad("cause.torch.encrypted")


def _raw_name(info: zipfile.ZipInfo) -> bytes:
    return info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")


def _derived(info: zipfile.ZipInfo, follow: int, alignment: int) -> int | None:
    """Where an entry's data begins, from where the next header does; None if in doubt."""
    wide = info.file_size >= _WIDE or info.header_offset >= _WIDE
    descriptor = (24 if wide else 16) if info.flag_bits & 0x8 else 0
    start = follow - descriptor - info.file_size
    extra = start - info.header_offset - _LOCAL.size - len(_raw_name(info))
    # The extra field: four bytes of its own, up to 28 for 64-bit sizes, and the filling.
    fits = start % alignment == 0 and 4 <= extra < 4 + 28 + alignment
    return start if fits else None
