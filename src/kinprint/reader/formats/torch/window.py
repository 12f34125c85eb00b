"""A seekable file over a FileView: what `zipfile` and `pickletools` read PyTorch files from.

Both read in small steps and move about; fetched pages are kept, so that a whole archive's
directory and pickle cost a handful of requests. There is a limit on what may be fetched,
because lengths in a damaged file may claim anything.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from kinprint import text
from kinprint.errors import BadArchive
from kinprint.reader.formats.view import FileView

PAGE = 16 << 10
LARGEST_STEP = 4 << 20
LONGEST_LINE = 4096  # the longest thing pickles end with a newline and PyTorch writes: a name


def bad_archive(file: str, key: str, /, **fields: object) -> BadArchive:
    """The refusal of a file, with its cause."""
    return BadArchive(file=file, cause=text.message(key, **fields))


class Window(io.RawIOBase):
    """The file, read by pages; `fetched` counts the bytes that were asked for."""

    def __init__(self, view: FileView, limit: int) -> None:
        super().__init__()
        self.view = view
        self.limit = limit
        self.fetched = 0
        self._position = 0
        self._pages: dict[int, bytes] = {}
        self._last, self._step = -1, 1  # where the last fetch ended, and its length

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to a place, which may not lie before the file's start."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.view.size}[whence]
        if start + offset < 0:  # an OSError, as of real files: zipfile looks for that
            raise io.UnsupportedOperation("a place before the start of the file")
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """The next `size` bytes, or as many as there are."""
        start = self._position
        rest = max(self.view.size - start, 0)
        size = rest if size is None or size < 0 else min(size, rest)
        if size == 0:
            return b""
        self._position = start + size
        first, skip = divmod(start, PAGE)
        if skip + size <= PAGE and first in self._pages:  # nearly every read of a pickle
            return self._pages[first][skip : skip + size]
        self.want(start, start + size)
        last = (start + size - 1) // PAGE
        joined = b"".join(self._pages[page] for page in range(first, last + 1))
        return joined[skip : skip + size]

    def readline(self, size: int | None = -1, /) -> bytes:
        """The next line, cut at a length that no sensible line has."""
        start = self._position
        line = self.read(LONGEST_LINE)
        stop = line.find(b"\n") + 1
        self._position = start + (stop or len(line))
        return line[:stop] if stop else line

    def want(self, start: int, stop: int) -> None:
        """Fetch what is missing of a part of the file, each gap with one request.

        A read that goes on where the last fetch ended fetches more than was asked for,
        twice as much each time: pickles of old files have no length to go by.
        """
        stop = min(stop, self.view.size)
        for first, last in self._gaps(start // PAGE, -(-stop // PAGE)):
            on = first == self._last
            ahead = first + (min(2 * self._step, LARGEST_STEP // PAGE) if on else 1)
            while last < ahead and last * PAGE < self.view.size and last not in self._pages:
                last += 1
            self._fetch(first, last)

    def _gaps(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        start = None
        for page in range(first, last):
            if page not in self._pages:
                start = page if start is None else start
                if (page + 1 - start) * PAGE > self.limit:
                    break  # refused by the fetch; no need to count on to the end
            elif start is not None:
                yield start, page
                start = None
        if start is not None:
            yield start, page + 1

    def _fetch(self, first: int, last: int) -> None:
        start, stop = first * PAGE, min(last * PAGE, self.view.size)
        if self.fetched + stop - start > self.limit:
            raise bad_archive(self.view.path, "cause.torch.too-much", most=self.limit >> 20)
        data = self.view.read(start, stop)
        self.fetched += stop - start
        for page in range(first, last):
            self._pages[page] = data[(page - first) * PAGE : (page - first + 1) * PAGE]
        self._last, self._step = last, last - first
