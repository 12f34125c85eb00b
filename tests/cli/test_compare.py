"""`kinprint compare` and `kinprint matrix` as people use them: real exit codes, some processes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import kinprint
from kinprint.cli.root import run as run_here
from kinprint.mirror import MirrorServer
from kinprint.reader.fetch import Fetcher
from kinprint.records import FileEntry
from kinprint.text.lines import columns_of
from tests.fewer_layers import short_zoo

Run = Callable[..., subprocess.CompletedProcess[str]]
CHILD, STRANGERS = ("zoo/base-a", "zoo/a-cpt"), ("zoo/base-a", "zoo/base-b")


@pytest.fixture
def server(demo: Path) -> Iterator[MirrorServer]:
    with MirrorServer(demo) as running:
        yield running


@pytest.fixture
def here(in_process: Callable[[str], Run], server: MirrorServer) -> Run:
    return in_process(server.endpoint)


@pytest.fixture
def run(
    hub_environment: Callable[..., dict[str, str]], server: MirrorServer, tmp_path: Path
) -> Run:
    def call(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kinprint", *arguments],
            env=hub_environment(server.endpoint, OMP_NUM_THREADS="1", **more),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return call


def test_a_descendant_is_found(run: Run, tmp_path: Path) -> None:
    done = run("compare", *CHILD, "--format", "json", "--exit-code", "-o", "found.json")
    assert done.returncode == 1, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["schema"] == "kinprint.compare/2"
    assert (found["a"], found["b"]) == CHILD
    assert found["made"]["numpy"] == np.__version__ and found["made"]["scipy"] == ""
    verdict = found["verdict"]
    assert verdict["relation"] == "derived" and verdict["link"]["log10_p"] < -100
    assert verdict["link"]["alpha"] == 1e-6 and "base-a" in verdict["summary"]
    spoken = [one for one in found["evidence"] if one["status"] == "ok"]
    assert all(
        {"test", "log10_p", "statistic", "null", "roles", "layers", "effect"} <= set(one)
        for one in spoken
    )
    assert min(one["log10_p"] for one in spoken) < -100
    assert 0 < found["read"]["bytes"] < 24_000_000
    assert json.loads((tmp_path / "found.json").read_text()) == found


def test_two_runs_say_the_same_to_the_last_digit(run: Run) -> None:
    """Python deals the hashes of words anew for every process."""
    found = []
    for seed in ("1", "2"):
        done = run("compare", *CHILD, "--format", "json", PYTHONHASHSEED=seed)
        told = json.loads(done.stdout)
        del told["read"]
        found.append(told)
    assert found[0]["changes"]["tensors"][0]["role"] == "embed"
    assert found[0] == found[1]


def test_strangers_are_not_accused(run: Run) -> None:
    done = run("compare", *STRANGERS, "--exit-code")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "No evidence" in words and "does not show that they are independent" in words
    assert max(map(columns_of, done.stdout.splitlines())) <= 60
    assert "feed-forward units of equal index" in words and "U1.blocks" not in words
    assert done.stdout.splitlines()[-1].startswith("read ")


def test_the_same_model_is_known_by_its_files(here: Run, demo: Path, server: MirrorServer) -> None:
    done = here("compare", "zoo/base-a", "zoo/base-a", "--format", "json", "--exit-code")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"]["relation"] == "identical"
    weights = (demo / "zoo" / "base-a" / "model.safetensors").stat().st_size
    assert found["read"]["bytes"] < weights / 100


def test_a_dry_run_reads_no_weight(here: Run) -> None:
    done = here("compare", *CHILD, "--dry-run", "--format", "json")
    assert done.returncode == 0, done.stderr
    planned = json.loads(done.stdout)
    assert planned["schema"] == "kinprint.compare-plan/1"
    assert planned["bytes"] > 5_000_000 > 600_000 > planned["spent"]["bytes"]
    spent = json.loads(here("compare", *CHILD, "--format", "json").stdout)["read"]
    assert spent["bytes"] <= planned["bytes"] + planned["spent"]["bytes"]


def test_errors_name_the_model(here: Run) -> None:
    done = here("compare", "zoo/base-a", "zoo/nothing")
    assert done.returncode == 2 and "zoo/nothing" in done.stderr and not done.stdout
    done = here("compare", *CHILD, "--budget", "10kB")
    assert done.returncode == 2 and "10 kB" in done.stderr
    assert here("compare", *CHILD, "--alpha", "2").returncode == 2


def test_all_pairs_of_a_matrix(run: Run) -> None:
    names = ("zoo/base-a", "zoo/a-cpt", "zoo/base-b")
    done = run("matrix", *names, "--format", "json", "--exit-code")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "kinprint.matrix/2"
    assert found["made"]["scipy"]  # which groups them, and takes no part in a comparison
    relations = {(one["a"], one["b"]): one["relation"] for one in found["pairs"]}
    assert relations == {
        ("zoo/base-a", "zoo/a-cpt"): "derived",
        ("zoo/base-a", "zoo/base-b"): "no-evidence",
        ("zoo/a-cpt", "zoo/base-b"): "no-evidence",
    }
    shown = run("matrix", *names, KINPRINT_LANG="ko")
    assert max(map(columns_of, shown.stdout.splitlines())) <= 80
    assert "가중치 공유" in shown.stdout


def relation(found: kinprint.Comparison) -> tuple[str, float]:
    return found.relation, found.log10_p


def test_the_order_of_the_models_makes_no_difference(demo: Path) -> None:
    names = [str(demo / "zoo" / name) for name in ("base-a", "a-cpt")]
    one = kinprint.compare(*names, level="quick")
    other = kinprint.compare(*reversed(names), level="quick", seed=7)
    assert relation(one) == relation(other)
    assert one.relation == "partial"
    assert "layers-not-read" in one.kind.reasons  # norms alone, and it says so
    assert {each.test[:2] for each in one.evidence if each.tier == "exact"} == {"E1", "E6"}


def test_reading_stops_when_the_answer_is_clear(demo: Path) -> None:
    """With too little for the whole, a descendant takes one stage and strangers take both."""
    folder = demo / "zoo"
    budget = 4_000_000
    base = str(folder / "base-a")
    child = kinprint.compare(base, str(folder / "a-cpt"), budget=budget)
    stranger = kinprint.compare(base, str(folder / "base-b"), budget=budget)
    assert child.plan.stages_read == 1 and child.relation == "derived"
    assert stranger.plan.stages_read == 2 and stranger.relation == "no-evidence"
    assert child.plan.stages == stranger.plan.stages == 2
    assert child.plan.bytes_at_most <= budget


def test_controls_rank_and_never_decide() -> None:
    folder = short_zoo()
    names = [str(folder / name) for name in ("base-a", "a-cpt")]
    plain = kinprint.compare(*names)
    found = kinprint.compare(*names, controls=[str(folder / "base-b"), str(folder / "a-cpt")])
    assert relation(found) == relation(plain)
    assert len(found.controls) == 4
    before = {one.test for one in plain.evidence}
    (ranked,) = [one for one in found.evidence if one.test not in before]
    assert ranked.tier == "calibrated"
    assert ranked.bound == "conformal" and ranked.n == 1
    assert ranked.log10_p is not None and ranked.floor is not None
    assert ranked.log10_p >= ranked.floor


def test_a_plan_says_what_goes_over_the_network_and_what_a_budget_counts(
    here: Run, demo: Path
) -> None:
    """Of files in place nothing does, and a budget counts them all the same."""
    folders = [str(demo / name) for name in CHILD]
    local, remote = (here("compare", *names, "--dry-run").stdout for names in (folders, CHILD))
    assert local.startswith("stage 1: nothing over the network\n")
    assert remote.startswith("stage 1: 6.8 MB over the network, ")
    counted = [one.split("knowing")[0].split("\n", 1)[1] for one in (local, remote)]
    assert counted[0] == counted[1] and "a budget counts at most 7." in counted[0]


def test_an_adapter_needs_the_base_that_it_does_not_name(here: Run, tmp_path: Path) -> None:
    """A low-rank change of base-a is derived from it; without a base nothing can be said."""
    chance = np.random.default_rng(0)
    root = "base_model.model.model.layers.{}.self_attn.q_proj.lora_{}.weight"
    save_file(
        {
            root.format(layer, side): chance.normal(0, 0.02, shape).astype(np.float32)
            for layer in range(6)
            for side, shape in (("A", (2, 128)), ("B", (128, 2)))
        },
        tmp_path / "adapter_model.safetensors",
    )
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config))
    alone = here("compare", str(tmp_path), "zoo/base-a")
    assert alone.returncode == 2 and "--base" in alone.stderr
    based = here("compare", str(tmp_path), "zoo/base-a", "--base", "zoo/base-a", "--exit-code")
    assert based.returncode == 1, based.stderr
    study = ("study", "run", "same-layer", str(tmp_path), "zoo/base-a", "--dry-run")
    assert here(*study).returncode == 2
    done = here(*study, "--base", "zoo/base-a")
    assert done.returncode == 0, done.stderr


def test_the_command_in_a_document_makes_it_again(here: Run, tmp_path: Path) -> None:
    """All but `read` is the same from run to run, wherever the bytes come from."""
    first = json.loads(here("compare", *CHILD, "--level", "quick", "--format", "json").stdout)
    words = shlex.split(first["made"]["command"])
    assert words[0] == "kinprint"
    again = json.loads(here(*words[1:], "--format", "json").stdout)
    assert first.pop("read")["requests"] > again.pop("read")["requests"]  # the cache has weights
    assert first == again
    assert all(one["commit"] and one["changed"] for one in first["models"])
    assert first["asked"]["level"] == "quick"


def test_a_matrix_names_what_it_could_not_read(here: Run) -> None:
    names = ("zoo/base-a", "zoo/gone", "zoo/a-cpt")
    done = here("matrix", *names, "--level", "quick", "--format", "json")
    assert done.returncode == 2  # what could be read is shown all the same
    found = json.loads(done.stdout)
    assert [one["given"] for one in found["unread"]] == ["zoo/gone"]
    assert [one["relation"] for one in found["pairs"]] == ["partial"]
    alone = here("matrix", *names[:2], "--level", "quick")
    assert alone.returncode == 2 and "zoo/gone" in alone.stderr and not alone.stdout


@pytest.mark.parametrize(
    ("asked", "hashed"),
    [((), 0), (("--format", "json"), 2), (("-o", "found.json"), 2),
     (("--format", "json", "--no-hash"), 0)],
)  # fmt: skip
def test_files_are_hashed_where_a_hash_is_shown(
    asked: tuple[str, ...],
    hashed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Large models in folders take long to hash, and a terminal has no place for it."""
    read: list[str] = []

    def digest(fetcher: Fetcher, entry: FileEntry) -> str | None:
        read.append(entry.path)
        return original(fetcher, entry)

    original = Fetcher.digest
    monkeypatch.setattr(Fetcher, "digest", digest)
    monkeypatch.chdir(tmp_path)
    assert run_here(["compare", *(str(short_zoo().parent / one) for one in CHILD), *asked]) == 0
    assert len(read) == hashed
    said = capfdbinary.readouterr().out
    document = (tmp_path / "found.json").read_bytes() if "-o" in asked else said
    if asked:
        found = json.loads(document)
        assert found["changes"] is not None and found["shared"] is not None
