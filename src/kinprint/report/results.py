"""What `kinprint.compare` and `kinprint.matrix` give: the record, its document, and how to see it.

A result shows itself in a notebook, becomes files with `save` and pictures with `figure`. What
the record has (`verdict`, `evidence`, `pairs`, `cost` …) can be asked of the result directly.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kinprint import text
from kinprint.errors import printable
from kinprint.lineage.results import Comparison, Matrix
from kinprint.records import Cost, Evidence, Verdict
from kinprint.report import answer
from kinprint.report.outputs import Drawn, decode_result, outputs, write_outputs
from kinprint.report.schema import ComparisonDocument, MatrixDocument, StudyDocument, settled
from kinprint.report.translation import warning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Found = TypeVar("Found", ComparisonDocument, MatrixDocument)


class Drawing(Generic[Found]):
    """A document that shows itself; `language` is "en" or "ko"."""

    def __init__(self, document: Found, language: str = "en") -> None:
        self.document: Found = document
        self.language = language

    def save(self, *paths: str | Path) -> list[Path]:
        """Write files, each in the form that its ending names, or a folder with all forms."""
        return write_outputs(self.document, outputs(paths, "path"), self.language)

    def figure(self, name: str | None = None) -> Figure:
        """A picture as a matplotlib figure: the telling one, or the one of that name.

        A comparison has "evidence", "layers" and "norms", as far as there is something to
        draw; a matrix has "matrix".
        """
        from kinprint.report.figures.comparison import charts_of
        from kinprint.report.figures.drawing import draw

        charts = {chart.name: chart for chart in charts_of(self.document)}
        wanted = next(iter(charts)) if name is None else name
        if wanted not in charts:
            raise ValueError(f"there is no picture {wanted!r} here, only {', '.join(charts)}")
        return draw(charts[wanted], self.language, warning(self.document, self.language))

    def _repr_html_(self) -> str:
        from kinprint.report.views.notebook import fragment

        return fragment(self.document, self.language)

    def __repr__(self) -> str:
        return f"<{printable(_in_short(self.document, self.language), 1000)}>"


class ComparisonResult(Drawing[ComparisonDocument]):
    """Two models compared."""

    def __init__(
        self, found: Comparison, document: ComparisonDocument, language: str = "en"
    ) -> None:
        super().__init__(document, language)
        self.found = found

    @property
    def verdict(self) -> Verdict:
        """The relation, and how sure it is."""
        return self.found.verdict

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What each test found."""
        return self.found.evidence

    def __getattr__(self, name: str) -> Any:
        return _of_record(self, name)


class MatrixResult(Drawing[MatrixDocument]):
    """All pairs of some models."""

    def __init__(self, found: Matrix, document: MatrixDocument, language: str = "en") -> None:
        super().__init__(document, language)
        self.found = found

    def __getattr__(self, name: str) -> Any:
        return _of_record(self, name)


class StudyDrawing:
    """A study's result, read back from its file."""

    def __init__(self, document: StudyDocument, language: str = "en") -> None:
        self.document = document
        self.language = language

    def save(self, *paths: str | Path) -> list[Path]:
        """Write everything about it to folders."""
        return write_outputs(self.document, outputs(paths, "path"), self.language)

    def figure(self, name: str | None = None) -> Figure:
        """A picture as a matplotlib figure: the first, or the one of that name."""
        from kinprint.report.figures.drawing import draw

        charts = {chart.name: chart for chart in self.document.charts}
        wanted = next(iter(charts), "") if name is None else name
        if wanted not in charts:
            raise ValueError(f"there is no picture {wanted!r} here, only {', '.join(charts)}")
        return draw(charts[wanted], self.language)

    def __repr__(self) -> str:
        return f"<study {self.document.study.name} of {', '.join(self.document.models)}>"


def of_comparison(found: Comparison, cost: Cost, language: str = "en") -> ComparisonResult:
    """A comparison with its document, which is drawn now as its file will be drawn later."""
    from kinprint.report.build.comparison import comparison_document

    return ComparisonResult(found, settled(comparison_document(found, cost)), language)


def of_matrix(found: Matrix, cost: Cost, language: str = "en") -> MatrixResult:
    """All pairs with their document."""
    from kinprint.report.build.comparison import matrix_document

    return MatrixResult(found, settled(matrix_document(found, cost)), language)


AnyDrawing = Drawing[ComparisonDocument] | Drawing[MatrixDocument] | StudyDrawing


def drawing_of(given: str | Path | bytes | Drawn, language: str = "en") -> AnyDrawing:
    """A result from its file, its bytes or its document."""
    match given:
        case bytes():
            given = decode_result(given)
        case str() | Path():
            given = decode_result(Path(given).read_bytes(), str(given))
    match given:
        case ComparisonDocument():
            return Drawing(given, language)
        case MatrixDocument():
            return Drawing(given, language)
        case StudyDocument():
            return StudyDrawing(given, language)
    raise TypeError(f"a file or a document of kinprint is needed, not {type(given).__name__}")


def _of_record(result: ComparisonResult | MatrixResult, name: str) -> Any:
    """What only the record has; names with underscores are never its business."""
    if not name.startswith("_") and "found" in result.__dict__:
        found = result.__dict__["found"]
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"{type(result).__name__!r} has no attribute {name!r}")


def _in_short(document: ComparisonDocument | MatrixDocument, language: str) -> str:
    if isinstance(document, ComparisonDocument):
        verdict = document.verdict
        return f"{verdict.relation}: {answer.summary(verdict, language)}"
    from kinprint.report.matrix import count_related

    return text.say(
        "report.short.matrix",
        language,
        number=len(document.models),
        related=count_related(document),
        pairs=len(document.pairs),
    )
