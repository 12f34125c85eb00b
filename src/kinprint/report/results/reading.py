"""Results from their JSON, whichever kind it is."""

from __future__ import annotations

from kinprint.report.files import DATA
from kinprint.report.outputs import decode_result
from kinprint.report.results.comparison import Comparison, Matrix
from kinprint.report.results.diff import Diff
from kinprint.report.results.identify import Identification
from kinprint.report.results.inspection import Inspection
from kinprint.report.results.plan import Plan
from kinprint.report.results.study import StudyResult
from kinprint.report.results.tree import FamilyTree
from kinprint.report.results.unmerge import Unmerged
from kinprint.report.schema import (
    ComparisonDocument,
    DiffDocument,
    IdentifyDocument,
    InspectionDocument,
    MatrixDocument,
    PlanDocument,
    ReadingPlanDocument,
    StudyDocument,
    StudyPlanDocument,
    TreeDocument,
    UnmergeDocument,
    decode,
)


def read_result(
    raw: bytes, name: str = DATA, language: str = "en"
) -> Comparison | Matrix | StudyResult | Diff | Unmerged | Identification | FamilyTree:
    """The result in the bytes of a file, one that can be drawn; errors call it by `name`."""
    document = decode_result(raw, name)
    match document:
        case ComparisonDocument():
            return Comparison(document, language)
        case MatrixDocument():
            return Matrix(document, language)
        case StudyDocument():
            return StudyResult(document, language)
        case DiffDocument():
            return Diff(document, language)
        case UnmergeDocument():
            return Unmerged(document, language)
        case IdentifyDocument():
            return Identification(document, language)
        case TreeDocument():
            return FamilyTree(document, language)


def read_any(
    raw: bytes, name: str = DATA, language: str = "en"
) -> (
    Comparison
    | Matrix
    | StudyResult
    | Diff
    | Inspection
    | Plan
    | Unmerged
    | Identification
    | FamilyTree
):
    """The result in the bytes of a file, of any kind."""
    document = decode(raw, name)
    match document:
        case InspectionDocument():
            return Inspection(document, language)
        case PlanDocument() | ReadingPlanDocument() | StudyPlanDocument():
            return Plan(document, language)
    return read_result(raw, name, language)
