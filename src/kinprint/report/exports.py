"""Forms in which results are written to files: a registry, open to other packages.

A form is an `Export`: the ending of its files, and a function from a document and a language to
the content of one. A package adds forms with entry points of the group `kinprint.exports`, each
naming an `Export`::

    [project.entry-points."kinprint.exports"]
    bom = "acme_kinprint:BOM"

    BOM = Export(".bom.json", lambda document, language: encode_bom(document))

Its files can then be asked for with `-o` and `save` like any other. Folders hold the forms of
this package alone. A form of another package that cannot be loaded, or whose ending is taken, is
left out; `kinprint extensions` says why.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from msgspec import Struct

from kinprint.errors import BadOption
from kinprint.extensions import EXPORTS, Registry
from kinprint.report.schema import ComparisonDocument, DiffDocument, MatrixDocument, encode
from kinprint.text import message

Exported = ComparisonDocument | MatrixDocument


class Export(Struct, frozen=True):
    """A form in which results are written.

    Attributes
    ----------
    ending : what names of its files end in, such as `.html`, in small letters.
    content : the content of a file, of a document and a language.
    """

    ending: str
    content: Callable[[Exported, str], bytes]

    def __post_init__(self) -> None:
        if not self.ending.startswith(".") or self.ending != self.ending.lower():
            raise ValueError(f"'{self.ending}' is no ending such as .html")

    @property
    def name(self) -> str:
        """Forms go by their endings."""
        return self.ending


def _json(document: Exported, language: str) -> bytes:
    return encode(document)


def _html(document: Exported, language: str) -> bytes:
    """A page, which has all languages; the one that is asked for shows first."""
    if isinstance(document, MatrixDocument):
        from kinprint.report.views.html.matrix import matrix_page

        return matrix_page(document, language).encode("utf-8")
    from kinprint.report.views.html.pair import pair_page

    return pair_page(document, language).encode("utf-8")


def _markdown(document: Exported, language: str) -> bytes:
    from kinprint.report.views.markdown.comparison import page

    return page(document, language).encode("utf-8")


def _csv(document: Exported, language: str) -> bytes:
    from kinprint.report.views.csv import sheet, tables_of

    return sheet(tables_of(document)[0])


def _picture(document: Exported, language: str, form: str) -> bytes:
    """The most telling picture."""
    from kinprint.report.figures.comparison import charts_of
    from kinprint.report.figures.drawing import pictures
    from kinprint.report.translation import warning

    chart = charts_of(document)[0]
    return pictures(chart, (form,), language, warning(document, language))[0]


def _of_diff(document: DiffDocument, ending: str, language: str) -> bytes:
    """A diff in one of our own forms."""
    match ending:
        case ".json":
            return encode(document)
        case ".html":
            from kinprint.report.views.html.diff import diff_page

            return diff_page(document, language).encode("utf-8")
        case ".md":
            from kinprint.report.views.markdown.diff import page

            return page(document, language).encode("utf-8")
        case ".csv":
            from kinprint.report.views.csv import sheet, tables_of

            return sheet(tables_of(document)[0])
        case ".png" | ".svg":
            return _picture_of_diff(document, language, ending.removeprefix("."))
    raise BadOption(option="paths", value=ending, cause=message("cause.no-form-of-a-diff"))


def _picture_of_diff(document: DiffDocument, language: str, form: str) -> bytes:
    from kinprint.report.figures.changes import charts_of
    from kinprint.report.figures.drawing import pictures
    from kinprint.report.translation import warning

    charts = charts_of(document)
    if not charts:
        raise BadOption(option="paths", value=form, cause=message("cause.nothing-to-draw"))
    return pictures(charts[0], (form,), language, warning(document, language))[0]


OWN = (
    Export(".json", _json),
    Export(".html", _html),
    Export(".md", _markdown),
    Export(".csv", _csv),
    Export(".png", functools.partial(_picture, form="png")),
    Export(".svg", functools.partial(_picture, form="svg")),
)


_EXPORTS = Registry(EXPORTS, Export, lambda: {one.ending: one for one in OWN})


def exports() -> Registry[Export]:
    """All forms by their endings: ours, then those of other packages."""
    return _EXPORTS


def render(document: Exported | DiffDocument, ending: str, language: str = "en") -> bytes:
    """A document in the form that a file's ending names; forms of other packages know no diffs."""
    if isinstance(document, DiffDocument):
        return _of_diff(document, ending, language)
    return exports()[ending].content(document, language)


def export_for(name: str) -> Export | None:
    """The form that a file's name asks for; the longest ending counts."""
    small = name.lower()
    endings = sorted((end for end in exports() if small.endswith(end)), key=len)
    return exports()[endings[-1]] if endings else None
