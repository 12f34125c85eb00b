"""Studies by name: ours, and those of other packages, which never break the list."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from kinprint import extensions
from kinprint.cli.study import list_studies
from kinprint.errors import BadOption
from kinprint.measure.measures import measure, measures
from kinprint.studies.registry import studies, study_named

STUDY = """
from kinprint.studies.study import Procedure, Study
from kinprint.studies.results import Output
from kinprint.text import Words

WORDS = Words({"en": "A study of another package"})
NOTHING = Procedure(lambda inputs: [], lambda inputs: Output())
THING = Study("new-study", "X1", WORDS, WORDS, WORDS, NOTHING)
"""
MEASURE = """
from kinprint.measure.measures import Measure
from kinprint.text import Words

WORDS = Words({"en": "always seven"})
THING = Measure("seven", lambda a, b: 7.0, WORDS, WORDS)
"""
Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Lets another package add its `THING` to a group under a name."""

    def put(group: str, name: str, code: str) -> None:
        (tmp_path / "another_package.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "another_package", raising=False)
        point = EntryPoint(name, "another_package:THING", group)
        monkeypatch.setattr(
            extensions,
            "entry_points",
            lambda group: EntryPoints([point] if point.group == group else []),
        )
        monkeypatch.setattr(extensions, "_LOADED", {})

    return put


def test_a_study_of_another_package_stands_after_ours(install: Install) -> None:
    own = list(studies().own)
    install("kinprint.studies", "new-study", STUDY)
    assert list(studies()) == [*own, "new-study"] and len(studies()) == len(own) + 1
    assert study_named("new-study").title["ko"] == "A study of another package"
    assert studies().faults == ()


def test_our_studies_are_found_without_loading_others(install: Install) -> None:
    install("kinprint.studies", "new-study", "raise AssertionError('was imported')")
    assert study_named("layers").code == "D4"
    assert "another_package" not in sys.modules


def test_a_study_that_cannot_be_loaded_is_named_and_breaks_nothing(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("kinprint.studies", "new-study", "raise ValueError('broken')")
    assert list(studies()) == list(studies().own)
    with pytest.raises(BadOption, match="ValueError: broken"):
        study_named("new-study")
    list_studies.main([], standalone_mode=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "baseline-claim" in shown and "'new-study' of" in shown and "broken" in shown


def test_our_names_cannot_be_taken(install: Install) -> None:
    own = study_named("layers")
    install("kinprint.studies", "layers", STUDY.replace("new-study", "layers"))
    assert study_named("layers") is own and len(studies().faults) == 1


def test_a_measure_of_another_package_measures(install: Install) -> None:
    install("kinprint.measures", "seven", MEASURE)
    assert list(measures())[-1] == "seven"
    assert measure("seven", [1.0, 2.0], [3.0, 4.0]).value == 7


def test_a_name_that_is_nearly_one_is_answered_with_that() -> None:
    with pytest.raises(BadOption, match="nearest is 'layers'"):
        study_named("layer")
    with pytest.raises(BadOption, match="study list"):
        study_named("zzzzzz")
