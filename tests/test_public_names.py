"""What is public is written down: names, docstrings with all their parts, examples that run."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import kinprint

ROOT = Path(__file__).resolve().parents[1]
VERBS = [
    "diff",
    "identify",
    "plan_diff",
    "plan_unmerge",
    "unmerge",
    "cached",
    "clear_cache",
    "compare",
    "find_study",
    "inspect",
    "installed_extensions",
    "matrix",
    "list_measures",
    "open",
    "plan",
    "plan_comparison",
    "plan_inspection",
    "plan_study",
    "report",
    "reproduce",
    "list_studies",
    "study",
]
RESULTS = [
    "Added",
    "Atlas",
    "AtlasContents",
    "AtlasEntry",
    "Diff",
    "FamilyTree",
    "Identification",
    "Unmerged",
    "Verified",
    "CacheContents",
    "CachedModel",
    "Comparison",
    "Failure",
    "Inspection",
    "InstalledExtension",
    "Matrix",
    "Model",
    "Plan",
    "Reader",
    "Reproduction",
    "Result",
    "StudyResult",
    "Tensor",
]
RECORDS = [
    "Cost",
    "Geometry",
    "Measure",
    "ModelRef",
    "Part",
    "PartFinding",
    "Progress",
    "Study",
    "Table",
]
ENUMS = [
    "ClaimedEdge",
    "DeclaredState",
    "DirectionBasis",
    "Standing",
    "MergeDoubt",
    "MergeMethod",
    "MergeOutcome",
    "MergeStatus",
    "TensorStatus",
    "Operation",
    "Group",
    "Level",
    "Component",
    "PartState",
    "Relation",
    "Role",
    "Status",
    "Tier",
]
ERRORS = [
    "AccessRefused",
    "AtlasBroken",
    "AtlasError",
    "AtlasFull",
    "BadAdapter",
    "BadArchive",
    "BadConfig",
    "BadGguf",
    "BadHeader",
    "BadIndex",
    "BadOption",
    "BadPickle",
    "BadQuantisation",
    "BadReference",
    "BadTokenizer",
    "BodyBroken",
    "BudgetExceeded",
    "CacheBroken",
    "CacheError",
    "ClusterError",
    "ClusterLost",
    "ClusterUnfit",
    "ClusterUnreachable",
    "DiskFull",
    "DtypeUnknown",
    "EntryBroken",
    "FileChanged",
    "FileMissing",
    "FormatError",
    "InternalError",
    "KinprintError",
    "LengthWrong",
    "MissingExtra",
    "MissingLibrary",
    "NetworkError",
    "NoWeights",
    "NotAHub",
    "NotRecorded",
    "OfflineMiss",
    "PartsMissing",
    "RangeIgnored",
    "RangeRefused",
    "RateLimited",
    "RepositoryGated",
    "RepositoryMissing",
    "RepositoryPrivate",
    "RevisionMissing",
    "ServerFailed",
    "SliceOutside",
    "SourceError",
    "SystemFailed",
    "TensorMissing",
    "TensorUnknown",
    "TooSlow",
    "Unreachable",
    "UsageError",
    "WorkerDied",
]


def public() -> Iterator[tuple[str, Any]]:
    """Every verb and every method of a result, with its name."""
    for name in VERBS:
        yield name, getattr(kinprint, name)
    for name in RESULTS:
        kind = getattr(kinprint, name)
        for method, thing in vars(kind).items():
            found = thing.__func__ if isinstance(thing, classmethod) else thing
            if isinstance(found, FunctionType) and not method.startswith("_"):
                yield f"{name}.{method}", found


def test_the_names_are_those_that_were_agreed_on() -> None:
    agreed = [*VERBS, *RESULTS, *RECORDS, *ENUMS, *ERRORS, "__version__"]
    assert sorted(kinprint.__all__) == sorted(agreed)
    assert len(set(agreed)) == len(agreed)
    assert set(agreed) <= set(dir(kinprint))


def test_every_name_is_what_it_is_called() -> None:
    for name in kinprint.__all__:
        thing = getattr(kinprint, name)
        assert name == "__version__" or thing.__name__ == name
    assert all(issubclass(getattr(kinprint, name), kinprint.KinprintError) for name in ERRORS)
    assert all(issubclass(getattr(kinprint, name), Enum) for name in ENUMS)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = kinprint.nonsense  # type: ignore[attr-defined]


def test_the_verb_report_stays_a_verb_whatever_is_imported() -> None:
    code = (
        "import kinprint.report.outputs\n"
        "from kinprint.report import schema\n"
        "import kinprint\n"
        "assert callable(kinprint.report), kinprint.report\n"
        "from kinprint import report\n"
        "assert report.__module__ == 'kinprint.verbs.reports'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_room_that_is_no_verb_is_found_under_its_name() -> None:
    code = (
        "import kinprint.studies\n"
        "assert kinprint.studies.__name__ == 'kinprint.studies'\n"
        "assert kinprint.study.__module__ == 'kinprint.verbs.studying'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_naming_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, kinprint\n"
        "heavy = {'numpy', 'scipy', 'huggingface_hub', 'matplotlib', 'rich', 'msgspec', 'click'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [*RESULTS, *RECORDS, *ENUMS, *ERRORS])
def test_every_class_is_documented(name: str) -> None:
    kind = getattr(kinprint, name)
    assert vars(kind).get("__doc__")
    for member, thing in vars(kind).items():
        if isinstance(thing, property) and not member.startswith("_"):
            assert thing.__doc__, f"{name}.{member}"
            assert "return" in (thing.fget.__annotations__ if thing.fget else {}), member


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*one, id=one[0]) for one in public()])
def test_every_function_says_what_it_takes_gives_and_raises(name: str, thing: FunctionType) -> None:
    said = inspect.getdoc(thing) or ""
    parts = inspect.signature(thing).parameters
    taken = [one for one in parts if one not in ("self", "cls")]
    simple = not taken and "." in name and not re.search(r"^Returns$", said, re.MULTILINE)
    if simple:  # a method without arguments may say everything in a sentence
        assert said
        return
    sections = re.findall(r"^(\w+)\n-+$", said, re.MULTILINE)
    assert "Returns" in sections and "Examples" in sections, sections
    assert not taken or "Parameters" in sections
    if taken:
        (described,) = re.findall(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)\w+\n-+$", said, re.M | re.S)
        heads = re.findall(r"^(\*?\w[\w, *]*?)(?: : .*)?$", described, re.MULTILINE)
        names = {one.strip(" *") for head in heads for one in head.split(",")}
        assert set(taken) <= names, set(taken) - names
    hints = thing.__annotations__
    assert set(taken) | {"return"} <= set(hints)


@pytest.mark.parametrize("name", [*VERBS, *RESULTS])
def test_examples_run(name: str, demo: Path) -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    thing = getattr(kinprint, name)
    module = sys.modules[thing.__module__]
    found = [one for one in finder.find(thing, name, module, {}) if one.examples]
    assert found, name
    for one in found:
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(one, out=said.append)
        assert runner.failures == 0, "".join(said)


def test_the_package_says_an_example_that_runs() -> None:
    results = doctest.testmod(kinprint)
    assert results.attempted > 2 and results.failed == 0


@pytest.mark.parametrize("page", ["api.md", "api.ko.md"])
def test_every_name_stands_in_the_documentation(page: str) -> None:
    said = (ROOT / "docs" / page).read_text("utf-8")
    shown = {one.rpartition(".")[2] for one in re.findall(r"^::: ([\w.]+)$", said, re.MULTILINE)}
    assert {"errors", "schema"} <= shown
    assert {*VERBS, *RESULTS, *RECORDS, *ENUMS} <= shown
