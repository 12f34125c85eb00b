"""The dispute done again on replicas: every file of the originals, every number beside its own."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import kinprint
from kinprint import text
from kinprint.cli.root import run
from kinprint.errors import AccessRefused
from kinprint.mirror import MirrorServer
from kinprint.model.model import Model
from kinprint.records import NumberStatus, Step
from kinprint.report.views.reproduction import _data, _line, number_title
from kinprint.studies.charts import Bars, Lines, Panels
from kinprint.studies.registry import studies
from kinprint.studies.reproduction import reproduction
from kinprint.studies.reproduction.published import fixed, published
from kinprint.studies.study import Request
from kinprint.verbs.reproducing import carry_out

FIGURES = Path(__file__).resolve().parents[1] / "replica" / "figures.csv"
LAYERWISE = "derivation/out_solar_vs_glm45_layerwise_similarity.csv"
SINGLE = 7e-7  # what sums in single precision are good for, as the analyses computed them

TOLD: list[tuple[Step, str, int, int]] = []  # what was told while all was done


@pytest.fixture(scope="module")
def done(replica_models: Mapping[str, Model]) -> kinprint.Reproduction:
    what = reproduction("solar-vs-glm")
    return carry_out(what, _models(replica_models), Request(), tell=lambda *step: TOLD.append(step))


def _models(found: Mapping[str, Model]) -> dict[str, Model]:
    """Replicas by the short names of the reproduction."""
    what = reproduction("solar-vs-glm")
    named = {model.name.rpartition("/")[2]: model for model in found.values()}
    places = {name: what.replicas.get(name, place) for name, place in what.models.items()}
    return {name: named[place.rpartition("/")[2]] for name, place in places.items()}


def test_progress_counts_the_studies_that_are_done(done: kinprint.Reproduction) -> None:
    computed = [(number, count) for step, _, number, count in TOLD if step is Step.COMPUTING]
    assert {count for _, count in computed} == {len(done.studies)}
    assert computed[-1][0] == len(done.studies)


def test_every_step_names_a_study_and_known_models() -> None:
    what = reproduction("solar-vs-glm")
    for step in what.steps:
        assert step.study in studies()
        assert set(step.models) <= set(what.models)
    assert {study.code for study in studies().values()} >= {
        *(f"D{n}" for n in range(1, 11)), *(f"P{n}" for n in range(1, 6)),
        *(f"C{n}" for n in range(1, 7)),
    }  # fmt: skip
    used = {step.study for step in what.steps}
    assert set(studies()) <= used, "a study that the reproduction does not make"


def test_every_section_speaks_of_published_numbers() -> None:
    what = reproduction("solar-vs-glm")
    known = {one.key for one in published()}
    unknown = [key for section in what.sections for key in section.keys if key not in known]
    assert not unknown
    assert set(what.numbers) <= known


def test_published_numbers_come_back(done: kinprint.Reproduction) -> None:
    fixed_ones = [one for one in done.numbers if one.status == "by construction"]
    assert len(fixed_ones) > 900
    for one in fixed_ones:
        printed = 0.5 * 10 ** -len(one.published.partition(".")[2])
        allowed = max(printed * (1 + 1e-9), SINGLE * max(1.0, abs(float(one.published))))
        assert one.difference is not None
        assert abs(one.difference) <= allowed, (one.number, one.found, one.published)


def test_what_is_missing_is_what_replicas_do_not_have(done: kinprint.Reproduction) -> None:
    assert not [one for one in done.numbers if one.status == "not found"]
    missing = [one.number for one in done.numbers if one.status == "not in the replica"]
    holes = re.compile(r"[a-z_0-9]+/(k|v|router)/|embeddings/|tokenizers/|tensor-types/|raw-bytes/")
    assert all(holes.match(key) for key in missing), [k for k in missing if not holes.match(k)]


def test_random_vectors_are_measured_and_not_constructed(done: kinprint.Reproduction) -> None:
    found = {one.number: one for one in done.numbers}
    for measure, allowed in (("cosine", 0.0002), ("pearson", 0.003), ("l2", 0.02)):
        one = found[f"metrics/random/{measure}/mean"]
        assert one.status == "measured"
        assert one.difference is not None and abs(one.difference) <= allowed


def test_the_tree_is_that_of_the_originals(done: kinprint.Reproduction, tmp_path: Path) -> None:
    few = {"layers", "layer-zero", "configuration"}
    kept = {name: study.document for name, study in done.studies.items() if name in few}
    document = msgspec.structs.replace(done.document, studies=tuple(kept))
    part = kinprint.Reproduction(document, kept)
    written = {str(path.relative_to(tmp_path)) for path in part.save(tmp_path)}
    drawn = {
        file.path for file in reproduction(done.name).files
        if file.step in few and "p99" not in (file.chart or "")
    }  # fmt: skip
    assert drawn <= written
    assert {
        "README.md",
        "CLAIMS.md",
        "reproduction.json",
        "revisions.json",
        "published.csv",
        "critique/results/RESULTS.md",
    } <= written
    on_disk = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert on_disk == written
    rows = list(csv.DictReader((tmp_path / "published.csv").read_text("utf-8").splitlines()))
    assert len(rows) == len(published())
    shown = [row["difference"] for row in rows if row["status"] == "by construction"]
    assert set(shown) == {"by construction"}
    text = (tmp_path / "critique/results/RESULTS.md").read_text("utf-8")
    assert "NOT the real models" in text and "실제 모델이 아닙니다" in text
    for language, first in (("en", "NOT the real models"), ("ko", "실제 모델이 아닙니다")):
        folder = tmp_path
        if language != part.language:  # charts say what they say in one language
            folder = tmp_path / language
            alone = msgspec.structs.replace(document, studies=())
            pages = kinprint.Reproduction(alone, {})
            pages.language = language
            pages.save(folder)
        for page in ("README.md", "CLAIMS.md"):
            told = (folder / page).read_text("utf-8").splitlines()
            assert first in next(line for line in told if line.startswith("**"))
    assert "cosine, input norm | 0.9811 | 0.9811 | by construction (+0.0000)" in text
    config = json.loads(
        (tmp_path / "derivation/out_solar_vs_glm45/00_config_compare.json").read_text()
    )
    assert config["labels"]
    again = kinprint.Reproduction.load(tmp_path)
    assert again == part and set(again.studies) == few
    assert again.studies["layers"] == part.studies["layers"]


def test_every_expected_file_has_something_to_be_drawn_from(done: kinprint.Reproduction) -> None:
    for file in reproduction(done.name).files:
        result = done.studies[file.step]
        assert file.chart is None or file.chart in result.figures
        assert file.table is None or file.table in result.tables


def test_models_that_are_missing_leave_the_rest(replica_models: Mapping[str, Model]) -> None:
    what = reproduction("solar-vs-glm")
    found = _models(replica_models)
    opened = {name: found[name] for name in ("solar", "glm", "phi")}
    tasks = what.tasks(opened, Request())
    assert tasks["architectures"].names == ("solar", "glm", "phi")
    assert "derived-pair" not in tasks


def test_an_average_over_fewer_pairs_is_not_compared(replica_models: Mapping[str, Model]) -> None:
    """Three of six pairs are left: no difference, but what was published of those."""
    what = reproduction("solar-vs-glm")
    found = _models(replica_models)
    opened = {name: model for name, model in found.items() if name != "mixtral"}
    lost = AccessRefused(path="mixtral", cause=text.message("cause.source.disabled"))
    few = {"same-layer", "many-layers", "architectures-published"}
    part = replace(what, steps=tuple(step for step in what.steps if step.name in few))
    done = carry_out(part, opened, Request(), missing={"mixtral": lost})
    numbers = {one.number: one for one in done.numbers}
    mean = numbers["same-layer/mean"]
    assert mean.status is NumberStatus.OTHER_PAIRS and mean.difference is None
    assert mean.pairs is not None and mean.pairs.published == 6
    assert mean.pairs.names == ("solar[10]/glm[10]", "solar[10]/phi[10]", "glm[10]/phi[10]")
    assert mean.pairs.same == pytest.approx((0.9811 + 0.9776 + 0.9881) / 3, abs=1e-4)
    assert mean.found == pytest.approx(mean.pairs.same, abs=1e-4)
    at_five = numbers["many-layers/mean/5"]
    assert at_five.status is NumberStatus.OTHER_PAIRS and at_five.pairs is not None
    assert at_five.pairs.same is None  # nothing was published of these pairs alone
    dense = numbers["architectures/dense-dense/mean"]
    assert dense.status is NumberStatus.BY_CONSTRUCTION
    mixed = numbers["architectures/moe-dense/mean"]
    assert mixed.pairs is not None and len(mixed.pairs.names) == 12 and mixed.pairs.digits == 2
    assert list(done.missing) == ["mixtral"]
    assert any("mixtral is not available" in words["en"] for words in
               done.studies["same-layer"].document.findings)  # fmt: skip
    lines = [_line(one, "en") for one in (mean, at_five)]
    assert "published over 6 pairs, 3 of them available here" in lines[0]
    assert "published over the same 3: 0.982" in lines[0] and "−0." not in lines[0]
    assert "nothing was published" in lines[1]


@pytest.mark.parametrize(("options", "code"), [((), 2), (("--keep-going",), 0)])
def test_a_missing_model_ends_in_a_page_and_an_exit_code(
    done: kinprint.Reproduction,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    code: int,
) -> None:
    why = text.words("cause.source.disabled")
    document = msgspec.structs.replace(done.document, studies=(), missing={"mixtral": why})
    found = kinprint.Reproduction(document, {})
    monkeypatch.setattr(kinprint, "reproduce", lambda *names, **asked: found)
    command = ["reproduce", "solar-vs-glm", "-o", str(tmp_path), *options]
    assert run(command) == code
    assert "Missing models: mixtral" in capsys.readouterr().out
    for page in ("README.md", "critique/results/RESULTS.md"):
        assert "mixtral is not available and is in no number" in (tmp_path / page).read_text(
            "utf-8"
        )


def test_every_published_number_has_words() -> None:
    for key in {one.key for one in published()}:
        for language in ("en", "ko"):
            title = number_title(key, language)
            assert title and not re.search(r"[a-z]/[a-z]|_mean|number\.", title), title


def test_every_published_number_names_repository_and_commit() -> None:
    for one in published():
        assert re.match(r"[\w-]+/[\w-]+@[0-9a-f]{7}: \S", one.cited), one


def test_numbers_say_where_they_come_from(done: kinprint.Reproduction) -> None:
    found = {one.number: one for one in done.numbers}
    assert found["cosine/norm_in/solar[10]/glm[10]"].mark == "reconstructed"
    assert found["mean_abs_diff/norm_in/solar[10]/glm[10]"].mark == "invented"
    assert found["metrics/random/cosine/mean"].mark == "measured"
    assert found["cosine/k/solar[10]/glm[10]"].mark is None
    assert done.replica, "replicas say what they are, whoever serves them"


def test_no_hole_is_a_number(done: kinprint.Reproduction) -> None:
    confusion = done.studies["confusion"].document.facts["confusion_mean_abs_diff_layer10"]
    assert confusion["mats"]["k_proj"] == [[None] * 3] * 3
    assert confusion["marks"] == {
        "input_layernorm": "invented", "post_attention_layernorm": "invented",
        "k_proj": None, "v_proj": None,
    }  # fmt: skip
    assert done.studies["raw-bytes"].document.facts["identical"] is None


def test_layer_zero_of_the_metrics_is_that_of_the_two_models(done: kinprint.Reproduction) -> None:
    zero = done.studies["metrics"].document.facts["norm_in"]["layer_zero"]["cosine"]
    assert zero["set"] == ["solar[0]/solar[10]", "glm[0]/glm[10]"]
    assert zero["mean"] == pytest.approx(0.3744, abs=1e-3)


def test_the_derived_pair_stands_out_when_centred(done: kinprint.Reproduction) -> None:
    facts = done.studies["known-pairs"].document.facts["norm_in"]
    names = ("intellect-3", "solar", "phi")
    derived, asked, control = (facts[name]["pearson"]["mean"] for name in names)
    assert derived > 0.999 and abs(asked) < 0.02 and abs(control) < 0.02
    assert [facts[name]["kind"] for name in facts] == ["pair", "related", "other"]
    panels = done.studies["baseline-claim"].document.charts[0]
    assert isinstance(panels, Panels) and isinstance(panels.charts[1], Bars)
    bars = panels.charts[1].bars
    assert [bar.kind for bar in bars if bar.value is not None and bar.value > 0.9] == ["related"]


def test_a_mean_over_layers_is_of_the_same_pairs_at_each(done: kinprint.Reproduction) -> None:
    """More models have a layer 10 than other layers; the line is of the six that have them all."""
    panels = done.studies["summary"].document.charts[0]
    assert isinstance(panels, Panels) and isinstance(panels.charts[2], Lines)
    line = next(one for one in panels.charts[2].series if "6 pairs" in one.label["en"])
    assert line.y == pytest.approx((0.9432, 0.9639, 0.98, 0.9897, 0.9889, 0.971), abs=5e-5)


def test_every_sigma_has_a_name(done: kinprint.Reproduction) -> None:
    panels = done.studies["baseline-claim-refuted"].document.charts[0]
    assert isinstance(panels, Panels) and isinstance(panels.charts[0], Bars)
    first, second, *_ = panels.charts[0].bars
    assert first.label["en"] == "phi and glm, baseline of glm" and first.value == pytest.approx(
        424, abs=0.5
    )
    assert second.label["en"] == "solar and glm, baseline of glm"


def test_pearson_by_layer_is_held_against_chance(done: kinprint.Reproduction) -> None:
    found = done.studies["layers"].document.facts["norm_pre_by_chance"]
    assert found["mean"] == pytest.approx(0.0126, abs=1e-4) and found["beyond"] == 4
    assert found["largest"] == pytest.approx(0.043, abs=5e-4)
    # 46 independent layers: 1 - sum of binomial terms below 4 at 0.0455, and 1 - (1 - p)^46.
    assert found["independent"]["beyond"] == pytest.approx(0.16, abs=0.02)
    assert found["independent"]["largest"] == pytest.approx(0.24, abs=0.03)
    assert found["independent"]["mean"] < 1e-3 < found["together"]["mean"]


def test_packaged_numbers_are_the_published_ones() -> None:
    """Both tables were copied from the publications, this one to seven digits."""
    known = {(one.key, one.source): one.value for one in published()}
    with FIGURES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    checked = 0
    for row in rows:
        role = {"input": "norm_in", "post": "norm_post_attn"}[row["role"]]
        places = f"solar[{row['layer_a']}]/{row['model_b']}[{row['layer_b']}]"
        if row["model_a"] != "solar" or row["metric"] not in ("cosine", "pearson"):
            continue
        key = f"{row['metric']}/{role}/{places}"
        value, source = float(row["value"]), row["source"].removeprefix("reference/")
        if source.startswith("vs-phi/"):
            assert known[key, source] == pytest.approx(value, rel=1e-6, abs=1e-9), row
        elif source.startswith("sanity-check/"):  # the same vectors in another publication
            assert known[key, LAYERWISE] == pytest.approx(value, abs=6e-7), row
        else:
            continue
        checked += 1
    assert checked > 200


def test_only_what_statistics_of_norms_determine_counts_as_fixed() -> None:
    assert fixed("cosine/norm_in/solar[10]/glm[10]") and fixed("many-layers/mean/5")
    assert not fixed("cosine/k/solar[10]/glm[10]") and not fixed("decay/off_diagonal_mean")
    assert not fixed("mean_abs_diff/norm_in/solar[10]/glm[10]")


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dispute with a few of its studies, which is enough to see what a page says."""
    what = reproduction("solar-vs-glm")
    few = {"baseline-claim", "same-layer", "many-layers", "metrics", "repository", "derived-pair"}
    part = replace(what, steps=tuple(step for step in what.steps if step.name in few))
    monkeypatch.setattr("kinprint.verbs.reproducing.reproduction", lambda name: part)


def _in_english(folder: Path, page: str) -> str:
    """The English half of a page, which comes after the Korean one."""
    return (folder / page).read_text("utf-8").rpartition("\n# ")[2]


@pytest.mark.slow
@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("refusal", ["gated", "private"])
def test_a_model_that_the_hub_refuses_leaves_sets_that_differ(
    replicas: Path,
    make_mirror: Callable[..., MirrorServer],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    refusal: str,
) -> None:
    """Over HTTP, with a gated Mixtral: averages of other pairs are not compared."""
    make_mirror(replicas, hash_limit=0, **{refusal: ("mistralai/Mixtral-8x7B*",)})
    assert run(["reproduce", "solar-vs-glm", "--no-cache", "-o", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert "Missing models: mixtral" in told.out and "mistralai/Mixtral-8x7B" in told.err
    page = _in_english(tmp_path, "critique/results/RESULTS.md")
    assert "**mixtral is not available and is in no number:" in page
    mean = next(line for line in page.splitlines() if line.startswith("| all pairs: mean cosine"))
    assert "| 0.9823 | 0.9639 | published over 6 pairs, 3 of them available here" in mean
    assert "published over the same 3: 0.982" in mean
    lost = next(line for line in page.splitlines() if "solar\\[10\\] – mixtral\\[10\\]" in line)
    assert lost.startswith("| solar") and "| – | 0.9408 | not found |" in lost
    rows = csv.DictReader((tmp_path / "published.csv").read_text("utf-8").splitlines())
    others = [row for row in rows if row["status"] == "other pairs"]
    assert len(others) > 10 and not any(row["difference"] for row in others)
    assert {row["published_pairs"] for row in others} == {"6", "36"}
    assert json.loads((tmp_path / "revisions.json").read_text("utf-8")).keys() == {
        "solar", "glm", "phi", "mistral", "yi-6b", "yi-9b", "internlm2", "qwen", "intellect-3",
    }  # fmt: skip


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("lost", ["solar", pytest.param("glm", marks=pytest.mark.slow)])
def test_without_one_of_the_pair_a_page_says_so_and_the_rest_is_done(
    replicas: Path,
    make_mirror: Callable[..., MirrorServer],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lost: str,
) -> None:
    place = reproduction("solar-vs-glm").models[lost]
    make_mirror(replicas, hash_limit=0, gated=(place,))
    assert run(["reproduce", "solar-vs-glm", "--no-cache", "-o", str(tmp_path)]) == 2
    assert f"Missing models: {lost}" in capsys.readouterr().out
    report = _in_english(tmp_path, "derivation/RESULTS.md")
    assert f"**{lost} is not available and is in no number:" in report
    assert f"Not done: it needs {lost}." in report.partition("## Within one model")[2]
    assert f"Not done: it needs {lost}." in report.partition("## Licences")[2]
    pairs = reproduction("solar-vs-glm").numbers
    numbers = json.loads((tmp_path / "reproduction.json").read_text("utf-8"))["numbers"]
    found = {one["number"]: one for one in numbers}
    for key in pairs:  # no average of other models stands beside one of this pair
        if key.startswith(("baseline/", "baselines/")):
            assert found[key]["found"] is None, key
    critique = _in_english(tmp_path, "critique/results/RESULTS.md")
    assert "published over 6 pairs, 3 of them available here: " in critique
    done = {path.stem for path in (tmp_path / "studies").iterdir()}
    assert {"same-layer", "many-layers"} <= done and "baseline-claim" not in done
    assert ("derived-pair" in done) == (lost == "solar")


@pytest.mark.usefixtures("few_steps")
def test_nothing_can_be_said_without_any_model(
    replicas: Path,
    make_mirror: Callable[..., MirrorServer],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_mirror(replicas, hash_limit=0, gated=("*",))
    assert run(["reproduce", "solar-vs-glm", "-o", str(tmp_path / "out")]) == 2
    assert "is gated" in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("gated", ["mistralai/*", "*"])
def test_a_study_of_several_models_does_without_a_gated_one(
    replicas: Path,
    make_mirror: Callable[..., MirrorServer],
    capsys: pytest.CaptureFixture[str],
    gated: str,
) -> None:
    make_mirror(replicas, hash_limit=0, gated=(gated,))
    models = [reproduction("solar-vs-glm").models[name] for name in ("solar", "phi", "mixtral")]
    assert run(["study", "run", "same-layer", *models, "--layers", "10", "--no-cache"]) == 2
    told = capsys.readouterr()
    assert "is gated" in told.err
    if gated == "*":
        assert not told.out
    else:
        assert "Mixtral-8x7B-Instruct-v0.1 is not available and is in no number" in told.out
        assert "0.9776 (one pair)" in told.out and "NOT the real model" in told.out


def test_facts_of_a_missing_model_are_no_file(replica_models: Mapping[str, Model]) -> None:
    what = reproduction("solar-vs-glm")
    models = {name: one for name, one in _models(replica_models).items() if name != "solar"}
    part = replace(what, steps=tuple(step for step in what.steps if step.name == "within-model"))
    study = carry_out(part, models, Request()).studies["within-model"].document
    path = "vs-phi/within_model/cosine/within_cosine_{}_layers10_20_30.json"
    files = {file.path: file for file in what.files}
    assert _data(files[path.format("solar")], study) is None
    assert b"0.99" in (_data(files[path.format("glm")], study) or b"")
