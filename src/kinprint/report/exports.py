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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kinprint.errors import BadOption
from kinprint.extensions import EXPORTS, Registry
from kinprint.report.schema import ComparisonDocument, DiffDocument, MatrixDocument, encode
from kinprint.text import message

if TYPE_CHECKING:
    from kinprint.report.figures.drawing import Picture

Exported = ComparisonDocument | MatrixDocument | DiffDocument


@dataclass(frozen=True, slots=True)
class Export:
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
    if isinstance(document, DiffDocument):
        from kinprint.report.views.html.diff import diff_page

        return diff_page(document, language).encode("utf-8")
    from kinprint.report.views.html.pair import pair_page

    return pair_page(document, language).encode("utf-8")


def _markdown(document: Exported, language: str) -> bytes:
    if isinstance(document, DiffDocument):
        from kinprint.report.views.markdown import diff

        return diff.page(document, language).encode("utf-8")
    from kinprint.report.views.markdown.comparison import page

    return page(document, language).encode("utf-8")


def _csv(document: Exported, language: str) -> bytes:
    from kinprint.report.views.csv import sheet, tables_of

    return sheet(tables_of(document)[0])


def _picture(document: Exported, language: str, form: str) -> bytes:
    """The most telling picture."""
    from kinprint.report.figures import changes, comparison
    from kinprint.report.figures.drawing import pictures
    from kinprint.report.translation import warning

    if isinstance(document, DiffDocument):
        charts: Sequence[Picture] = changes.charts_of(document)
    else:
        charts = comparison.charts_of(document)
    if not charts:
        raise BadOption(option="paths", value=form, cause=message("cause.nothing-to-draw"))
    chart = charts[0]
    return pictures(chart, (form,), language, warning(document, language))[0]


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


def render(document: Exported, ending: str, language: str = "en") -> bytes:
    """A document in the form that a file's ending names."""
    return exports()[ending].content(document, language)


def export_for(name: str) -> Export | None:
    """The form that a file's name asks for; the longest ending counts."""
    small = name.lower()
    endings = sorted((end for end in exports() if small.endswith(end)), key=len)
    return exports()[endings[-1]] if endings else None
