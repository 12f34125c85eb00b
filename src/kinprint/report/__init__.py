"""What people see: documents and pictures, drawn from records and computing nothing.

The package is a verb as well: `kinprint.report("result.json")` reads a result back and shows it,
because a function of that name beside this package would be hidden by its first import.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kinprint.report.results import AnyDrawing
    from kinprint.report.schema import ComparisonDocument, MatrixDocument, StudyDocument


class _Verb(ModuleType):
    """This package, which can be called."""

    def __call__(
        self,
        given: str | Path | bytes | ComparisonDocument | MatrixDocument | StudyDocument,
        language: str = "en",
    ) -> AnyDrawing:
        from kinprint.report.results import drawing_of

        return drawing_of(given, language)


sys.modules[__name__].__class__ = _Verb
