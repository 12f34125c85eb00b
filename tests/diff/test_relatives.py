"""What is said of two models is true in either order, of siblings, and of merges whose other
parents are known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kinprint
from benchmarks.redteam.checkpoint import Checkpoint
from kinprint import Operation
from kinprint.mirror import MirrorServer
from kinprint.records import Precedence, Trace
from kinprint.report.views.terminal.diff import diff_lines
from tests.diff.merged_models import Family, drawn, tuned
from tests.diff.test_direction import log
from tests.fewer_layers import fewer_layers, short_zoo

EITHER = "One was made from the other, or both from a third model"
DEPTH = 4  # layers: of fewer, too few matrices of a kind stay alike


def sibling() -> Checkpoint:
    """Another tune of base-a: what training changed in a layer of a-cpt, in the next one."""
    base, tuned = fewer_layers("base-a", DEPTH), fewer_layers("a-cpt", DEPTH)
    depth = base.geometry["num_hidden_layers"]

    def moved(name: str) -> str:
        head, _, rest = name.partition(".layers.")
        layer, _, what = rest.partition(".")
        return f"{head}.layers.{(int(layer) + 1) % depth}.{what}"

    return base.changed(
        {
            name: (values + tuned.tensors[moved(name)] - base.tensors[moved(name)]).astype(
                np.float32
            )
            for name, values in base.tensors.items()
            if ".layers." in name
        }
    )


@pytest.fixture(scope="module")
def brother(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sibling().write(tmp_path_factory.mktemp("relatives") / "brother")


@pytest.mark.parametrize("given", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_siblings_and_either_order_are_not_called_parent_and_child(
    brother: Path, given: bool
) -> None:
    base, tuned = (short_zoo(DEPTH) / name for name in ("base-a", "a-cpt"))
    pairs = [(tuned, brother)] if given else [(base, tuned), (tuned, base)]
    for a, b in pairs:
        found = kinprint.diff(a, b, given=base if given else None)
        assert [one.kind for one in found.operations] == [Operation.CONTINUED]
        said = "base-a was given as the model that both were made from" if given else EITHER
        assert said in found.summary
        assert found.direction is not None and found.direction.answer is Precedence.UNDECIDED


def test_traces_say_which_came_first_in_either_order(tmp_path: Path) -> None:
    """Two must agree: the log of one run goes on, and tokens were added."""
    run = [4.0, 3.5, 3.2, 3.1, 3.05, 3.0]
    for name, steps, losses in (("base-a", 30, run[:5]), ("a-cpt", 50, run)):
        shutil.copytree(short_zoo() / name, tmp_path / name)
        (tmp_path / name / "trainer_state.json").write_bytes(log(steps, *losses))
    child, parent = tmp_path / "a-cpt", tmp_path / "base-a"
    file = child / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["model"]["vocab"]["<another>"] = 1 + max(tokenizer["model"]["vocab"].values())
    file.write_text(json.dumps(tokenizer))
    for a, b in ((parent, child), (child, parent)):
        found = kinprint.diff(a, b)
        assert "Traces say that base-a came first: a-cpt was made from it" in found.summary
        lines = " ".join(line.text.strip() for line in diff_lines(found.document, "en"))
        assert "after 30 steps" in lines


def test_what_logs_cost_is_planned(
    tmp_path: Path, make_mirror: Callable[..., MirrorServer]
) -> None:
    names = "zoo/base-a", "zoo/a-cpt"
    for name, steps in zip(names, (30, 50), strict=True):
        shutil.copytree(short_zoo().parent / name, tmp_path / name)
        (tmp_path / name / "trainer_state.json").write_bytes(log(steps, *range(2, 2000)))
    make_mirror(tmp_path)
    plan = kinprint.plan_diff(*names, sample=False, cache=False)
    found = kinprint.diff(*names, sample=False, cache=False)
    assert found.direction is not None
    assert [one.trace for one in found.direction.traces] == [Trace.TRAINING]
    assert found.document.read.bytes <= plan.bytes_at_most


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    base = drawn(1)
    found = Family(tmp_path_factory.mktemp("merges"), base, tuned(base, 2), tuned(base, 3, 0.02))
    for name, tensors in (
        ("base", base), ("first", found.first), ("second", found.second),
        ("child", found.average()),
    ):  # fmt: skip
        found.write(name, tensors)
    return found


@pytest.mark.parametrize(
    ("a", "b", "parents", "sample"),
    [
        ("base", "child", ("first", "second"), False),
        ("child", "first", ("second",), False),
        ("first", "child", ("second",), True),
    ],
)
def test_a_merge_is_named_where_its_parents_are_known(
    family: Family, a: str, b: str, parents: tuple[str, ...], sample: bool
) -> None:
    found = kinprint.diff(
        family.folder / a,
        family.folder / b,
        parents=[family.folder / one for one in parents],
        sample=sample,
    )
    (merge,) = found.operations
    assert merge.kind is Operation.MERGED and merge.hub == "merge"
    recipe = "child by a linear average: first (weight 0.3), second (weight 0.7)"
    assert merge.recipe == recipe and recipe in found.summary
    assert "merge_method: linear" in merge.yaml
    assert "가중치 0.3" in kinprint.Diff(found.document, "ko").summary
    assert found.document.made.command.count("--parent") == len(parents)


def test_a_merge_that_is_none_or_is_only_declared_is_told_in_a_note(family: Family) -> None:
    card = family.folder / "child" / "mergekit_config.yml"
    card.write_text("models:\n  - model: org/one\n  - model: org/two\nmerge_method: linear\n")
    pair = family.folder / "first", family.folder / "child"
    declared = kinprint.diff(*pair)
    assert Operation.MERGED not in {one.kind for one in declared.operations}
    assert any("merge (org/one, org/two)" in note for note in declared.document.notes)
    tried = kinprint.diff(*pair, parents=[family.folder / "base"])
    assert Operation.MERGED not in {one.kind for one in tried.operations}
    assert any("Neither model is a merge" in note for note in tried.document.notes)
