"""What all results can do: show themselves, become files, tables and pictures, and come back."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from msgspec import Struct

from kinprint import text
from kinprint.errors import BadOption, FileMissing, FormatError, KinprintError, printable
from kinprint.records import Cost
from kinprint.report.files import DATA, write_file
from kinprint.report.schema import (
    ComparisonDocument,
    DiffDocument,
    Document,
    MatrixDocument,
    StudyDocument,
    decode,
    encode,
)
from kinprint.report.translation import warning

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

    from kinprint.report.figures.drawing import Picture
    from kinprint.report.outputs import Output
    from kinprint.studies.results import Table

_T = TypeVar("_T")
Kept = TypeVar("Kept", bound=Document)
Drawn = TypeVar("Drawn", ComparisonDocument, MatrixDocument, StudyDocument, DiffDocument)
MOST_BYTES = 512 * 1024 * 1024  # the JSON of a matrix of a thousand models is smaller


class Failure(Struct, frozen=True):
    """A model that was set aside, and why.

    Attributes
    ----------
    given : str
        The model as it was given.
    error : KinprintError
        What went wrong with it.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> models = [zoo / name for name in ("base-a", "base-b", "nowhere")]
    >>> found = kinprint.study("same-layer", *models, layers=[3])
    >>> type(found.failures[0].error).__name__
    'BadReference'
    """

    given: str
    error: KinprintError


class Result(ABC, Generic[Kept]):
    """What every result can do.

    Attributes
    ----------
    language : str
        What the result speaks where it shows itself, such as "en" or "ko"; may be changed.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.compare(zoo / "base-a", zoo / "a-cpt", level="quick")
    >>> isinstance(found, kinprint.Result)
    True
    """

    _DATA: ClassVar[str] = DATA  # the file in a folder that is written as a whole

    def __init__(self, document: Kept, language: str = "en") -> None:
        self._document: Kept = document
        self.language = language

    @property
    def document(self) -> Kept:
        """The record from which everything is shown, field by field the JSON."""
        return self._document

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data: what its JSON file holds.

        Returns
        -------
        dict
            Fields as the JSON Schema of its kind has them; "schema" names it.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> found = kinprint.inspect(kinprint.demo.FOLDER / "zoo" / "base-a")
        >>> found.to_dict()["schema"]
        'kinprint.inspect/1'
        """
        found: dict[str, Any] = json.loads(self.to_json())
        return found

    def to_json(self) -> bytes:
        """The result as the bytes of its JSON file.

        Returns
        -------
        bytes
            UTF-8, the same for the same result.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> found = kinprint.inspect(kinprint.demo.FOLDER / "zoo" / "base-a")
        >>> found.to_json()[:1]
        b'{'
        """
        return encode(self._document)

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, Table]:
        """Its tables by name, the most telling first."""

    def to_frame(
        self, table: str | None = None, *, library: str | None = None
    ) -> pandas.DataFrame | polars.DataFrame:
        """One of its tables as a data frame.

        Parameters
        ----------
        table : str, optional
            The name of one of `tables`; the first if None.
        library : {"pandas", "polars"}, optional
            Which library to use; the first of them that is installed if None.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            A row a part for a comparison, a pair for a matrix, a tensor for an inspection, a
            number for a reproduction.

        Raises
        ------
        MissingLibrary
            Neither library is installed.
        BadOption
            There is no such table.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> zoo = kinprint.demo.FOLDER / "zoo"
        >>> found = kinprint.compare(zoo / "base-a", zoo / "base-b", level="quick")
        >>> frame = found.to_frame()
        >>> "state" in frame.columns
        True
        """
        from kinprint.report.results.tables import frame

        return frame(_named(self.tables, table, "table"), library)

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of its pictures, the most telling first; none where there is nothing to draw."""
        return tuple(self._pictures())

    def _pictures(self) -> Mapping[str, Picture]:
        """Its pictures by name, to be drawn."""
        return {}

    def _warning(self) -> str:
        """What a picture has to say about its models, as that they are replicas."""
        return ""

    def figure(self, name: str | None = None) -> Figure:
        """One of its pictures as a figure of matplotlib.

        Parameters
        ----------
        name : str, optional
            One of `figures`; the first if None.

        Returns
        -------
        matplotlib.figure.Figure
            A figure that belongs to no window.

        Raises
        ------
        BadOption
            There is no such picture.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> zoo = kinprint.demo.FOLDER / "zoo"
        >>> found = kinprint.compare(zoo / "base-a", zoo / "a-cpt", level="quick")
        >>> found.figures[0]
        'evidence'
        >>> figure = found.figure("evidence")
        """
        from kinprint.report.figures.drawing import draw

        return draw(_named(self._pictures(), name, "name"), self.language, self._warning())

    def save(self, *paths: str | os.PathLike[str]) -> list[Path]:
        """Write files, each in the form that its ending names, or a folder with all forms.

        Parameters
        ----------
        *paths : str or path
            Comparisons and matrices: files that end in .json, .html, .md, .csv, .png or .svg, or
            folders (no ending, or a slash at the end). Studies and reproductions: folders.
            Inspections and plans: files that end in .json.

        Returns
        -------
        list of pathlib.Path
            The files written.

        Raises
        ------
        BadOption
            A place cannot be written to, or its ending names no form that the result has.

        Examples
        --------
        >>> import kinprint, kinprint.demo, pathlib, tempfile
        >>> found = kinprint.inspect(kinprint.demo.FOLDER / "zoo" / "base-a")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = found.save(pathlib.Path(folder, "model.json"))
        >>> [file.name for file in files]
        ['model.json']
        """
        from kinprint.report.outputs import outputs

        return self._write(outputs([os.fspath(path) for path in paths], data=self._DATA))

    def _write(self, wanted: Sequence[Output]) -> list[Path]:
        """Write what was asked for; the files. A result has its JSON at least."""
        from kinprint.report.outputs import json_alone

        json_alone(wanted)
        return [write_file(one.path, self.to_json()) for one in wanted]

    @classmethod
    def load(cls, path: str | os.PathLike[str], language: str = "en") -> Self:
        """Read a result back from its JSON file, or from the folder that holds it.

        Parameters
        ----------
        path : str or path
            A file that `save` wrote, or its folder.
        language : str
            What the result is to speak.

        Returns
        -------
        Result
            Of the class that was asked.

        Raises
        ------
        FileMissing
            There is no such file.
        FormatError
            It holds something else.

        Examples
        --------
        >>> import kinprint, kinprint.demo, pathlib, tempfile
        >>> zoo = kinprint.demo.FOLDER / "zoo"
        >>> found = kinprint.compare(zoo / "base-a", zoo / "a-cpt", level="quick")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     (file,) = found.save(pathlib.Path(folder, "result.json"))
        ...     again = kinprint.Comparison.load(file)
        >>> again == found
        True
        """
        from kinprint.report.results.reading import read_any

        found = read_any(read_file(path), str(path), language)
        if not isinstance(found, cls):
            kinds = {"found": type(found).__name__, "wanted": cls.__name__}
            raise FormatError(cause=text.message("cause.result.other-kind", file=path, **kinds))
        return found

    @abstractmethod
    def _in_short(self) -> str:
        """One line about it."""

    @abstractmethod
    def _repr_html_(self) -> str:
        """What a notebook shows."""

    def __repr__(self) -> str:
        return f"<{printable(self._in_short(), 1000)}>"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())


class FiledResult(Result[Kept]):
    """A result with files of a few forms, which their endings choose."""

    ENDINGS: ClassVar[tuple[str, ...]]
    _REFUSAL: ClassVar[str]  # of another ending, the key of what to say

    @classmethod
    def check(
        cls, paths: Sequence[str | os.PathLike[str]], models: Iterable[str] = ()
    ) -> list[Path]:
        """The files that are asked for, refused if they could not be written later, or if they
        lie in one of the models that are read."""
        from kinprint.report.outputs import files_ending_in

        return files_ending_in(cls.ENDINGS, paths, cls._REFUSAL, models)

    def save(self, *paths: str | os.PathLike[str]) -> list[Path]:
        """Write files, each in the form that its ending names.

        Parameters
        ----------
        *paths : str or path
            Files, each with one of the endings in `ENDINGS`.

        Returns
        -------
        list of pathlib.Path
            The files written.

        Raises
        ------
        BadOption
            A place cannot be written to, or its ending names no form that the result has.

        Examples
        --------
        >>> import kinprint, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = kinprint.Atlas(folder).tree()
        ...     (file,) = found.save(pathlib.Path(folder, "families.graphml"))
        >>> file.name
        'families.graphml'
        """
        ready = [(file, self._content(file)) for file in self.check(paths)]
        return [write_file(file, raw) for file, raw in ready]

    @abstractmethod
    def _content(self, file: Path) -> bytes:
        """What goes into a file."""


class DrawnResult(Result[Drawn]):
    """A result that has pages and pictures, and a folder for all of them."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What models say they are not, as replicas do."""
        return tuple(self._document.labels)

    @property
    def cost(self) -> Cost:
        """What was read, and how long all of it took."""
        read = self._document.read
        return Cost() if read is None else read.cost

    def _write(self, wanted: Sequence[Output]) -> list[Path]:
        from kinprint.report.outputs import write_outputs

        return write_outputs(self._document, wanted, self.language)

    def _warning(self) -> str:
        return warning(self._document, self.language)


def read_as(kind: type[_T], raw: bytes, name: str) -> _T:
    """The document in a file, of the kind that is needed."""
    found = decode(raw, name)
    if not isinstance(found, kind):
        kinds = {"found": type(found).__name__, "wanted": kind.__name__}
        raise FormatError(cause=text.message("cause.result.other-kind", file=name, **kinds))
    return found


def read_file(path: str | os.PathLike[str], data: str = DATA) -> bytes:
    """The bytes of a result's file, or of the file in a folder that was written as a whole."""
    file = Path(path)
    inside = file / data
    file = inside if inside.is_file() else file
    if file.is_dir():
        cause = text.message("cause.result.folder", folder=str(path), file=data)
        raise FormatError(cause=cause)
    if not file.is_file():
        raise FileMissing(name=str(file.absolute().parent), path=file.name)
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES)


def _named(found: Mapping[str, _T], name: str | None, option: str) -> _T:
    wanted = next(iter(found), "") if name is None else name
    if wanted not in found:
        cause = text.message("cause.option.choice", choices=", ".join(found))
        raise BadOption(option=option, value=wanted, cause=cause)
    return found[wanted]
