"""A seed that no JSON file could hold is refused before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kinprint
from kinprint.cli.root import run
from kinprint.errors import BadOption
from kinprint.records import LARGEST_SEED

NOWHERE = ("./nowhere", "./neither")  # reading them would be another error
VERBS: dict[str, Callable[[int, Path], object]] = {
    "compare": lambda seed, _: kinprint.compare(*NOWHERE, seed=seed),
    "matrix": lambda seed, _: kinprint.matrix(NOWHERE, seed=seed),
    "plan_comparison": lambda seed, _: kinprint.plan_comparison(NOWHERE, seed=seed),
    "diff": lambda seed, _: kinprint.diff(*NOWHERE, seed=seed),
    "plan_diff": lambda seed, _: kinprint.plan_diff(*NOWHERE, seed=seed),
    "unmerge": lambda seed, _: kinprint.unmerge(NOWHERE[0], NOWHERE, seed=seed),
    "plan_unmerge": lambda seed, _: kinprint.plan_unmerge(NOWHERE[0], NOWHERE, seed=seed),
    "study": lambda seed, _: kinprint.study("same-layer", *NOWHERE, seed=seed),
    "plan_study": lambda seed, _: kinprint.plan_study("same-layer", *NOWHERE, seed=seed),
    "reproduce": lambda seed, _: kinprint.reproduce(revisions=NOWHERE[0], seed=seed),
    "identify": lambda seed, place: kinprint.identify(NOWHERE[0], atlas=place, seed=seed),
    "Atlas.build": lambda seed, place: kinprint.Atlas(place).build(NOWHERE, seed=seed),
    "Atlas.search": lambda seed, place: kinprint.Atlas(place).search(NOWHERE[0], seed=seed),
    "Atlas.tree": lambda seed, place: kinprint.Atlas(place).tree(seed=seed),
}
COMMANDS = [
    ["compare", *NOWHERE],
    ["matrix", *NOWHERE],
    ["diff", *NOWHERE],
    ["unmerge", *NOWHERE],
    ["study", "run", "same-layer", *NOWHERE],
    ["reproduce", "solar-vs-glm"],
    ["identify", NOWHERE[0]],
    ["atlas", "add", *NOWHERE],
    ["atlas", "build", *NOWHERE],
    ["atlas", "search", NOWHERE[0]],
    ["atlas", "tree"],
]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1])
def test_verbs_refuse_a_seed_at_once(verb: str, seed: int, tmp_path: Path) -> None:
    with pytest.raises(BadOption, match=f"seed cannot be '{seed}': it lies between 0 and 9007"):
        VERBS[verb](seed, tmp_path)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda given: " ".join(given[:2]))
def test_commands_refuse_a_seed_at_once(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--seed", str(LARGEST_SEED + 1)]) == 2
    assert "--seed cannot be '9007199254740992': it lies between" in capsys.readouterr().err


def test_the_largest_seed_is_kept_in_json(tmp_path: Path) -> None:
    zoo = Path(kinprint.__file__).parent / "demo" / "zoo"
    pair = zoo / "base-a", zoo / "a-cpt"
    found = kinprint.compare(*pair, level="quick", seed=LARGEST_SEED)
    (file,) = found.save(tmp_path / "found.json")
    assert kinprint.Comparison.load(file) == found
