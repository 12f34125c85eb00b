"""Documents as JSON files, and back; whatever else is in a file is refused.

What is drawn and printed is what the JSON says: a document goes through its file's form before
the first picture (`settled`), so that redrawing from the file gives the same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import msgspec

from kinprint import text
from kinprint.errors import FormatError
from kinprint.records import MergeOutcome
from kinprint.report.schema.comparison import ComparisonDocument
from kinprint.report.schema.diff import DiffDocument
from kinprint.report.schema.identify import IdentifyDocument
from kinprint.report.schema.inspection import InspectionDocument
from kinprint.report.schema.matrix import MatrixDocument
from kinprint.report.schema.plan import PlanDocument, ReadingPlanDocument, StudyPlanDocument
from kinprint.report.schema.reproduction import ReproductionDocument
from kinprint.report.schema.study import StudyDocument
from kinprint.report.schema.tree import TreeDocument
from kinprint.report.schema.unmerge import UnmergeDocument

Plan = PlanDocument | ReadingPlanDocument | StudyPlanDocument
Document = (
    ComparisonDocument
    | MatrixDocument
    | StudyDocument
    | DiffDocument
    | InspectionDocument
    | ReproductionDocument
    | UnmergeDocument
    | IdentifyDocument
    | TreeDocument
    | Plan
)
Shown = TypeVar(
    "Shown",
    bound=ComparisonDocument
    | MatrixDocument
    | StudyDocument
    | DiffDocument
    | UnmergeDocument
    | IdentifyDocument
    | TreeDocument,
)

_Known = TypeVar("_Known", bound=Document)

_SHOWN = 200  # characters of a cause
_UNKNOWN_KIND = re.compile(r"Invalid value '(.*)' - at `\$\.schema`")
# More than any comparison has; a page of it would help nobody.
_MOST = {"models": 1000, "evidence": 500, "seeds": 20_000, "labels": 2000, "notes": 2000,
         "configuration": 500, "controls": 2000, "samples": 1000, "unread": 2000,
         "failed": 500_000}  # fmt: skip
_DRAWS = 20_000
_DESCRIBING = Lock()


def encode(document: object, indent: int = 1) -> bytes:
    """The JSON file of a document: the same bytes for the same document, always valid text."""
    try:
        raw = encode_line(document)
    except UnicodeEncodeError:  # names on a disk and tokens may be no text
        raw = msgspec.json.encode(_valid(msgspec.to_builtins(document, enc_hook=plain)))
    return msgspec.json.format(raw, indent=indent) + b"\n"


def encode_line(document: object) -> bytes:
    """A document as one line of JSON; an error where it holds what is no text."""
    return msgspec.json.encode(document, enc_hook=plain)


def decode(raw: bytes, name: str = "result.json") -> Document:
    """The document in a JSON file; an error that names the file where there is none."""
    # Few files are of the first version, whose reader loads all that is said of a comparison.
    from kinprint.report.schema.first import FirstComparison, FirstMatrix

    read = _read(Document | FirstComparison | FirstMatrix, raw, name)
    found: Document = read.today() if isinstance(read, FirstComparison | FirstMatrix) else read
    return _checked(found, name)


def settled(document: Shown) -> Shown:
    """A document as it comes back from its file, so that it is drawn now as it will be then."""
    name = "result.json"
    found: Shown = _read(type(document), encode(document), name)
    return _checked(found, name)


def plain(value: object) -> object:
    """What the JSON has in place of a value that is no JSON: words, and numbers of numpy."""
    if isinstance(value, text.Words):
        return dict(value)
    if isinstance(value, text.Message):
        return str(value)
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(type(value).__name__)


def _record(kind: type, value: Any) -> Any:
    if kind is not text.Words:
        raise NotImplementedError(kind.__name__)
    return text.Words(msgspec.convert(value, dict[str, str]))


def _read(kind: Any, raw: bytes, name: str) -> Any:
    """What is of one of some kinds in the JSON of a file of that name."""
    try:
        return _decoder(kind).decode(raw)
    except RecursionError:
        raise _unreadable(name, text.message("cause.nested-too-deeply")) from None
    except msgspec.ValidationError as error:
        raise _unreadable(name, _misfit(str(error)[:_SHOWN])) from None
    except ValueError:  # msgspec's, and bytes that are no text
        raise _unreadable(name, text.message("cause.document.no-json")) from None


def _checked(document: _Known, name: str) -> _Known:
    """The document, unless it says what none says that was made here."""
    for cause in _contradictions(document):
        raise _unreadable(name, cause)
    return document


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """What reads documents of a kind, made behind a lock.

    msgspec describes a struct when it is first asked to, and two threads in which it describes the
    same one end the process. Comparisons may be made in threads.
    """
    with _DESCRIBING:
        return _described(kind)


@cache
def _described(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=_record)


def _contradictions(document: Document) -> Iterator[text.Message]:
    """What no document that was made here says, and what drawing one relies on."""
    for name, most in _MOST.items():
        if isinstance(document, TreeDocument):  # of an atlas, which has no limit
            break
        if len(getattr(document, name, ())) > most:
            yield text.message("cause.too-many-entries", most=f"{most:,}", name=name)
    if isinstance(document, ComparisonDocument | DiffDocument) and len(document.models) != 2:
        yield text.message("cause.not-two-models", number=len(document.models))
    if isinstance(document, UnmergeDocument) and not _is_merge(document):
        yield text.message("cause.merge-broken")
    if isinstance(document, ComparisonDocument):
        if any(len(one.null) > _DRAWS for one in document.evidence):
            yield text.message("cause.too-many-draws", most=f"{_DRAWS:,}")
    elif isinstance(document, MatrixDocument):
        count = len(document.models)
        if document.order and sorted(document.order) != list(range(count)):
            yield text.message("cause.order-incomplete")
        if document.tree and not _is_tree(document, count):
            yield text.message("cause.tree-broken")
    elif isinstance(document, TreeDocument):
        places = {at for family in document.families for at in family}
        places |= {at for one in (*document.edges, *document.links) for at in (one.a, one.b)}
        places |= {at for one in document.failed for at in (one.a, one.b)}
        if max(places, default=-1) >= len(document.models):
            yield text.message("cause.place-unknown")


def _is_merge(document: UnmergeDocument) -> bool:
    """Whether every number of a source is one, and an outcome has what it speaks of."""
    recipe, groups = document.recipe, (*document.roles, *document.layers)
    weights = [*document.weights, *(one for some in groups for one in some.weights)]
    weights += [one for tensor in document.tensors for one in tensor.weights]
    numbers = [document.base, document.copied, *(one.source for one in document.tensors)]
    numbers += [at for one in weights for at in one.sources]
    if recipe is not None:
        numbers += [recipe.base, *recipe.parents]
        count, settings = len(recipe.parents), recipe.settings
        if settings is not None and count:
            lists = [] if settings.t is not None else [settings.weights]
            lists += [settings.densities] if settings.densities else []
            if any(len(one) != count for one in lists) or (settings.t is not None and count != 2):
                return False
    told = {MergeOutcome.RECIPE: recipe, MergeOutcome.COPY: document.copied}
    known = told.get(document.outcome, True) is not None
    return known and all(at is None or at < len(document.sources) for at in numbers)


def _is_tree(document: MatrixDocument, leaves: int) -> bool:
    """Whether merges join leaves and earlier merges, each once, into one."""
    if len(document.tree) != leaves - 1:
        return False
    joined: set[int] = set()
    for at, merge in enumerate(document.tree):
        for branch in (merge.one, merge.other):
            if not 0 <= branch < leaves + at or branch in joined:
                return False
            joined.add(branch)
        if not math.isfinite(merge.height):
            return False
    return True


def _misfit(detail: str) -> text.Message:
    """What is wrong with JSON that is no document, from what msgspec says of it."""
    if "`schema`" in detail:
        return text.message("cause.document.no-kind")
    if (kind := _UNKNOWN_KIND.match(detail)) is not None:
        return text.message("cause.document.unknown-kind", kind=kind[1])
    return text.message("cause.document.other-form", detail=detail)


def _unreadable(name: str, cause: str | text.Message) -> FormatError:
    return FormatError(cause=text.message("cause.no-document", file=name, cause=cause))


def _valid(value: Any) -> Any:
    """Plain data with halves of characters spelled out, so that it can be written as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_valid(key): _valid(each) for key, each in value.items()}
    return [_valid(each) for each in value] if isinstance(value, list | tuple) else value
