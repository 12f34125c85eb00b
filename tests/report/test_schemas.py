"""The schemas in the repository: current, and every document that can be made keeps to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from msgspec.structs import replace

from kinprint.lineage.compare import compare_models
from kinprint.lineage.matrix import compare_all
from kinprint.lineage.planning import plan_comparison
from kinprint.lineage.results import ComparisonPlan, Settings
from kinprint.model.inspection import inspect_checkpoint
from kinprint.reader.checkpoint import label_of, open_checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import Cost
from kinprint.replica.manifest import LABEL
from kinprint.report.build.comparison import comparison_document, matrix_document, plan_document
from kinprint.report.build.inspection import inspection_document
from kinprint.report.build.study import study_document
from kinprint.report.schema import (
    COMPARE_SCHEMA,
    ComparisonDocument,
    Document,
    MatrixDocument,
    PlanDocument,
    decode,
    encode,
    json_schema,
    settled,
)
from kinprint.studies.registry import study_named
from kinprint.studies.study import Request
from kinprint.text import message
from tests.conftest import ZOO
from tests.fewer_layers import short_zoo
from tests.opened import open_models
from tests.report import samples
from tests.studies.runs import run_studies

FOLDER = Path(__file__).resolve().parents[2] / "schema"
FIRST = ("kinprint.compare-1.schema.json", "kinprint.matrix-1.schema.json")
"""Schemas of documents that are read and no longer written."""


@pytest.fixture(scope="module")
def validators() -> dict[str, Any]:
    found = {}
    for name in json_schema.KINDS:
        schema = json.loads((FOLDER / json_schema.file_name(name)).read_bytes())
        Draft202012Validator.check_schema(schema)
        found[name] = Draft202012Validator(schema)
    return found


def check(document: Document, validators: dict[str, Any]) -> Any:
    """A document keeps to the schema that it names, comes back the same, and has no gaps."""
    raw = encode(document)
    assert encode(decode(raw)) == raw
    found = json.loads(raw)
    validators[found["schema"]].validate(found)
    return found


@pytest.fixture(scope="module")
def fetcher() -> Iterator[Fetcher]:
    with Fetcher() as one:
        yield one


def compared(fetcher: Fetcher, *names: Path, **how: Any) -> ComparisonDocument:
    controls = how.pop("controls", ())
    found = compare_models(str(names[0]), str(names[1]), fetcher, Settings(**how), controls)
    return comparison_document(found, found.cost)


def test_files_are_current() -> None:
    """Renew them with `python -m kinprint.report.schema.json_schema schema`."""
    readme = (FOLDER / json_schema.README).read_text(encoding="utf-8")
    made = json_schema.files(readme)
    for name, raw in made.items():
        assert (FOLDER / name).read_bytes() == raw, name
    assert {one.name for one in FOLDER.iterdir()} == {*made, *FIRST}


def test_every_field_has_its_words_and_no_other() -> None:
    told = {
        (title, field)
        for name in json_schema.KINDS
        for title, definition in json_schema.schema_of(name)["$defs"].items()
        for field in definition["properties"]
    }
    words = {(title, field) for title, each in json_schema.field_words().items() for field in each}
    assert words == told


def test_a_schema_refuses_what_it_should(validators: dict[str, Any]) -> None:
    validator = validators[COMPARE_SCHEMA]
    assert not validator.is_valid({"schema": COMPARE_SCHEMA})
    assert not validator.is_valid({})


@pytest.mark.parametrize(
    ("other", "how", "relation"),
    [
        ("a-cpt", {}, "derived"),
        ("a-cpt", {"level": "quick"}, "partial"),
        ("a-cpt", {"level": "deep", "seed": 3}, "derived"),
        ("base-b", {"budget": 4_000_000}, "no-evidence"),
        ("base-a", {}, "identical"),
    ],
)
def test_comparisons_keep_to_their_schema(
    demo: Path, fetcher: Fetcher, validators: dict[str, Any], other: str, how: Any, relation: str
) -> None:
    document = compared(fetcher, demo / "zoo/base-a", demo / "zoo" / other, **how)
    assert document.verdict.relation == relation
    found = check(document, validators)
    assert {"a", "b", "verdict", "evidence", "read"} <= set(found)
    assert found["configuration"] and found["models"][0]["files"] == 1
    assert (found["shared"] is None) == (relation == "identical")
    assert bool(found["seeds"]) == (relation != "identical")


def test_controls_keep_to_the_schema(fetcher: Fetcher, validators: dict[str, Any]) -> None:
    control = str(short_zoo() / "base-b")
    names = short_zoo() / "base-a", short_zoo() / "a-cpt"
    found = check(compared(fetcher, *names, controls=(control,)), validators)
    assert found["asked"]["controls"] == [control] and found["controls"]
    assert "--control ./base-b" in found["made"]["command"]


def test_a_matrix_keeps_to_its_schema(fetcher: Fetcher, validators: dict[str, Any]) -> None:
    names = [str(short_zoo() / name) for name in ("base-a", "base-b", "a-cpt", "nothing-here")]
    matrix = compare_all(names, fetcher, Settings())
    document = matrix_document(matrix, matrix.cost)
    assert isinstance(document, MatrixDocument)
    found = check(document, validators)
    assert [one["given"] for one in found["unread"]] == names[3:]
    assert {"a", "b", "relation", "log10_p"} <= set(found["pairs"][0])
    joined = found["tree"][0]
    (alike,) = (one["likeness"] for one in found["pairs"] if one["relation"] == "derived")
    assert {joined["one"], joined["other"]} == {0, 2}
    assert joined["height"] == pytest.approx(1 - alike, abs=1e-3)


def test_a_plan_keeps_to_its_schema(
    demo: Path, fetcher: Fetcher, validators: dict[str, Any]
) -> None:
    names = [str(demo / "zoo" / name) for name in ("base-a", "a-cpt")]
    found = plan_comparison(names, fetcher, Settings())
    assert isinstance(found, ComparisonPlan)
    document = plan_document(found, Cost(3, 1))
    assert isinstance(document, PlanDocument)
    check(document, validators)


@pytest.mark.parametrize("name", ["same-layer", "hypotheses"])
def test_studies_keep_to_their_schema(
    demo: Path, fetcher: Fetcher, validators: dict[str, Any], name: str
) -> None:
    paths = [str(demo / "zoo" / one) for one in ("base-a", "a-cpt")]
    models = open_models(paths, fetcher)
    (result,) = run_studies([study_named(name)], models, Request())
    refs = [model.checkpoint.ref for model in models]
    found = check(study_document(result, study_named(name), Request(), refs), validators)
    assert found["study"]["name"] == name and found["charts"] and found["read"] is None


def test_every_kind_of_chart_keeps_to_the_schema(validators: dict[str, Any]) -> None:
    result = replace(samples.result(), charts=tuple(samples.charts()))
    found = check(settled(study_document(result, samples.study())), validators)
    kinds = {one["kind"] for one in found["charts"]}
    assert kinds == {"lines", "bars", "heatmap", "flow", "panels"}


def test_labels_of_replicas_travel_with_their_translation(validators: dict[str, Any]) -> None:
    label = message("note.about-model", model="a", note=label_of(LABEL))
    result = replace(samples.result(), labels=(label,))
    found = check(settled(study_document(result, samples.study())), validators)
    assert found["translations"]["ko"] == {f"a: {LABEL}": label.say("ko")}
    assert label.say("ko") != label.say("en") == f"a: {LABEL}"


def test_inspections_keep_to_their_schema(
    demo: Path, fetcher: Fetcher, validators: dict[str, Any]
) -> None:
    found = inspect_checkpoint(open_checkpoint(str(demo / "zoo/base-a"), fetcher))
    told = check(inspection_document(found, Cost(3, 1, 0.5)), validators)
    assert told["geometry"]["layers"] == 6 and told["read"]["requests"] == 1
    assert {one["role"] for one in told["tensors"]} >= {"embed", "q", "up", "norm_in"}


@pytest.mark.zoo
@pytest.mark.parametrize(
    ("example", "other"),
    [
        ("derived", "a-cpt"),
        ("laundered", "a-rotated"),
        ("independent", "base-b"),
        ("norms-only", "a-normsonly"),
        ("same-init", "tie-a"),
    ],
)
def test_example_reports_keep_to_the_schema_and_say_what_is_said_today(
    fetcher: Fetcher, validators: dict[str, Any], example: str, other: str
) -> None:
    told = check(compared(fetcher, ZOO / "base-a", ZOO / other), validators)
    kept = json.loads((FOLDER.parent / "docs/reports" / f"{example}.json").read_bytes())
    validators[kept["schema"]].validate(kept)
    assert_alike(told["verdict"], kept["verdict"])


def assert_alike(found: Any, kept: Any) -> None:
    """Both say the same, numbers but for how a processor sums."""
    if isinstance(kept, dict):
        assert found.keys() == kept.keys()
        for key, one in kept.items():
            assert_alike(found[key], one)
    elif isinstance(kept, list):
        assert len(found) == len(kept)
        for one, other in zip(found, kept, strict=True):
            assert_alike(one, other)
    elif isinstance(kept, float):
        assert found == pytest.approx(kept, rel=1e-4, abs=1e-5)
    else:
        assert found == kept
