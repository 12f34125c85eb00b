"""The screen of a matrix: it saves time, and what it lets pass is looked at as before."""

from __future__ import annotations

import os
import pickle
import re
import signal
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage import matrix, screening
from kinprint.lineage.matrix import PairEvidence, compare_all, run_pairs
from kinprint.lineage.opening import open_readable, read_headers, sampler_of
from kinprint.lineage.pair import Pair
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.lineage.results import Settings
from kinprint.lineage.screening import digest, have_likes, worth_comparing
from kinprint.lineage.side import Side
from kinprint.lineage.tests.menu import menu
from kinprint.mapped import shelf
from kinprint.measure.basis import unit_rows
from kinprint.reader.fetch import Fetcher
from kinprint.records import Component, Cost, Relation, VerdictReason
from kinprint.report.build.comparison import matrix_document
from kinprint.report.matrix import error_says
from kinprint.workers import workers
from tests.conftest import ZOO
from tests.fewer_layers import short_zoo
from tests.lineage.made import made
from tests.lineage.relabelling import relabelled
from tests.lineage.samples import samples_of
from tests.lineage.stored_models import LAYERS, LLAMA, Array, final, llama, sampled, stored

NAMES = ("base-a", "a-cpt", "base-b")
MANY = 96  # units of a feed-forward, enough to tell strangers by


@pytest.fixture(scope="module")
def samples() -> dict[str, Sample]:
    return samples_of(short_zoo(), NAMES)


def called(a: Sample, b: Sample) -> bool:
    found = [worth_comparing(digest(Prepared(x)), digest(Prepared(y))) for x, y in ((a, b), (b, a))]
    assert found[0] == found[1]
    return found[0]


def with_periodic_gains(sample: Sample) -> Sample:
    """A model whose channels have labels that mean something."""
    norms = {key: np.tile(gain[: sample.width // 2], 2) for key, gain in sample.norms.items()}
    return replace(sample, norms=norms)


def with_copied_channels(sample: Sample) -> Sample:
    """A model that was widened: half of its channels repeat the others, at places of chance."""
    copied = np.random.default_rng(0).permutation(np.tile(np.arange(sample.width // 2), 2))
    assert sample.embedding is not None
    embedding = replace(sample.embedding, rows=sample.embedding.rows[:, copied])
    norms = {key: gain[copied] for key, gain in sample.norms.items()}
    return replace(sample, embedding=embedding, norms=norms)


@pytest.mark.parametrize("change", [lambda one: one, with_periodic_gains, with_copied_channels])
def test_what_is_kept_of_channels_tells_tests_of_norms_the_same(
    samples: dict[str, Sample], change: Callable[[Sample], Sample]
) -> None:
    models = [change(samples[name]) for name in ("base-a", "base-b")]
    whole = [Side(one) for one in models]
    kept = [pickle.loads(pickle.dumps(side.channel_findings)) for side in whole]
    short = list(map(Side.with_channels, models, kept))
    tests = [one.test for one in menu("standard") if one.test.component is Component.NORMS]
    found, expected = ([test.run(Pair(*sides)) for test in tests] for sides in (short, whole))
    assert found == expected
    assert "sample" not in vars(short[0].prepared), "a matrix was prepared"


def test_strangers_call_for_nothing_and_descendants_do(samples: dict[str, Sample]) -> None:
    assert called(samples["base-a"], samples["a-cpt"])
    assert not called(samples["base-a"], samples["base-b"])
    assert not called(samples["a-cpt"], samples["base-b"])


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_what_is_numbered_anew_and_turned_is_looked_at(
    samples: dict[str, Sample], seed: int
) -> None:
    """Of an exact copy units show; after long training gates in the basis of the tokens do."""
    turned = relabelled(samples["base-a"], np.random.default_rng(seed))
    assert called(samples["base-a"], turned)
    assert called(turned, samples["a-cpt"])
    assert not called(turned, samples["base-b"])


@pytest.mark.parametrize("probed", ["base-a", "base-b"])
def test_rows_of_either_model_are_probed(samples: dict[str, Sample], probed: str) -> None:
    """Of a model with many more rows those that are probed may all be others'."""
    both = {name: digest(Prepared(samples[name])) for name in ("base-a", "base-b")}
    (other,) = both.keys() - {probed}
    assert not worth_comparing(both[probed], both[other])
    rows = unit_rows(np.random.default_rng(0).normal(size=(1000, 128)).astype(np.float32))
    found = (
        replace(both[probed], probes={"up 0": rows[:8]}),
        replace(both[other], by_role={"up 0": rows}),
    )
    assert worth_comparing(*found) and worth_comparing(*reversed(found))


@pytest.mark.parametrize("room", [1, 40_000, 1 << 20])
def test_rows_of_several_models_are_probed_at_once(
    samples: dict[str, Sample], monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """However many fit into the room there is, and whichever roles each of them has."""
    monkeypatch.setattr(screening, "_LIKENESSES", room)
    chance, blank = np.random.default_rng(0), digest(Prepared(samples["base-a"]))

    def rows(count: int, width: int = 128) -> Floats:
        found: Floats = unit_rows(chance.normal(size=(count, width)).astype(np.float32))
        return found

    table = {"up 0": rows(1000), "down 1": rows(600)}
    other = replace(blank, by_role=table)
    probes = [
        {"up 0": table["up 0"][5:13]},
        {"up 0": rows(8), "down 1": np.concatenate([rows(6), table["down 1"][:2]])},
        {"up 0": np.concatenate([rows(7), table["up 0"][:1]])},  # one alone may be chance
        {"up 0": rows(8, width=64)},
        {"gate 0": table["up 0"][:8]},
        {},
        {"down 1": -table["down 1"][90:94]},
        {"down 1": rows(12)},
    ]
    many = [replace(blank, probes=one) for one in probes]
    alone = [have_likes([one], other)[0] for one in many]
    assert have_likes(many, other) == alone
    assert alone == [True, True, False, False, False, False, True, False]
    assert have_likes([], other) == []


def test_the_order_of_two_models_makes_no_difference() -> None:
    """Narrow models of which some lie near the limits."""
    digests = [digest(Prepared(made(seed, width=8, units=64))) for seed in range(32)]
    found = [
        (worth_comparing(one, other), worth_comparing(other, one))
        for one, other in combinations(digests, 2)
    ]
    assert any(there for there, _ in found), "chance calls for some"
    assert all(there == back for there, back in found)


def test_one_copied_feed_forward_is_looked_at(samples: dict[str, Sample]) -> None:
    ours, theirs = samples["base-a"], samples["base-b"]
    thief = replace(theirs, units={**theirs.units, 0: ours.units[1]})
    assert called(ours, thief)


def stranger_with(taken: str) -> dict[str, Array]:
    """A stranger with something of the first model, at other places."""
    ours, theirs = (llama(seed, units=MANY) for seed in (1, 2))
    chance = np.random.default_rng(5)
    order = chance.permutation(MANY)
    up = "model.layers.2.mlp.up_proj.weight"
    if taken == "some rows":
        few = MANY // 4
        theirs[up][few : 2 * few] = ours["model.layers.1.mlp.up_proj.weight"][-few:]
        return theirs
    for name, one in ours.items():
        layer = re.search(r"layers\.(\d+)\.", name)
        noisy = (one + 0.05 * chance.normal(size=one.shape)).astype(np.float32)
        if layer and taken in name:
            next_one = (int(layer[1]) + 1) % LAYERS
            theirs[name.replace(layer[0], f"layers.{next_one}.")] = noisy
        elif taken == "units" and ("gate_proj" in name or "up_proj" in name):
            theirs[name] = noisy[order]
    return theirs


@pytest.mark.parametrize("taken", ["self_attn", "gate_proj", "down_proj", "units", "some rows"])
def test_what_was_taken_to_other_places_of_a_stranger_is_looked_at(
    tmp_path: Path, taken: str
) -> None:
    strange = llama(2, units=MANY)
    models = {"a": llama(1, units=MANY), "b": stranger_with(taken), "c": strange}
    config = {**LLAMA, "intermediate_size": MANY}
    given = [stored(tmp_path / name, tensors, config) for name, tensors in models.items()]
    with Fetcher() as fetcher:
        ours, thief, stranger = final(sampled(given, fetcher))
    assert called(ours, thief) and not called(ours, stranger)


def test_one_pair_alone_is_spared_no_test(demo: Path) -> None:
    with Fetcher() as fetcher:
        found = compare_all([str(demo / "zoo" / name) for name in NAMES[1:]], fetcher, Settings())
    (pair,) = found.pairs
    assert pair.verdict.relation is Relation.NO_EVIDENCE
    assert VerdictReason.SHORT_LOOK not in pair.verdict.reasons


def test_a_matrix_says_the_same_as_all_tests() -> None:
    given = [str(short_zoo(3) / name) for name in NAMES]
    settings = Settings("standard")
    with Fetcher() as fetcher:
        screened = compare_all(given, fetcher, settings)
    with Fetcher() as fetcher:
        whole = compare_all(given, fetcher, settings, screened=False)
    assert [one.verdict.relation for one in screened.pairs] == [
        one.verdict.relation for one in whole.pairs
    ]
    assert [one.likeness for one in screened.pairs] == [one.likeness for one in whole.pairs]
    short = [VerdictReason.SHORT_LOOK in one.verdict.reasons for one in screened.pairs]
    assert short == [one.verdict.relation is Relation.NO_EVIDENCE for one in whole.pairs]
    assert any(short) and not all(short)
    document = matrix_document(screened, Cost())
    assert "2 of 3 pairs were compared by their norms alone" in error_says(document, "en")
    assert "전체 3쌍 가운데 2쌍" in error_says(document, "ko")
    assert "norms alone" not in error_says(matrix_document(whole, Cost()), "en")
    for ours, all_tests in zip(screened.pairs, whole.pairs, strict=True):
        assert ours.verdict.amount.read == pytest.approx(all_tests.verdict.amount.read)


def test_processes_find_the_same(samples: dict[str, Sample]) -> None:
    towers = [(sample,) for sample in (*samples.values(), samples["base-a"])]
    pairs = list(combinations(range(len(towers)), 2))
    settings = Settings("quick")
    with shelf() as place:
        stored = [place.put(one) for one in towers]
        alone = run_pairs(stored, pairs, settings)
        together = run_pairs(stored, pairs, settings, jobs=2)
    for one, other in zip(alone, together, strict=True):
        assert isinstance(one, PairEvidence) and isinstance(other, PairEvidence)
        assert one.screened == other.screened
        assert one.towers[0][0] == other.towers[0][0]


def test_what_a_process_that_died_had_to_do_is_done_here(
    samples: dict[str, Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the system ends one for want of memory: one dies before its first model."""
    towers = [(sample,) for sample in (*samples.values(), samples["base-a"])]
    pairs = list(combinations(range(len(towers)), 2))
    monkeypatch.setattr(matrix, "_start_process", end_this_process)
    with shelf() as place:
        stored = [place.put(one) for one in towers]
        found = run_pairs(stored, pairs, Settings("quick"), jobs=2)
    assert all(isinstance(one, PairEvidence) for one in found)


def end_this_process(given: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stored_rows(sample: Sample) -> frozenset[int]:
    return frozenset(digest(Prepared(sample)).stored.tolist())


def test_processes_know_stored_rows_by_the_same_names() -> None:
    """Digests of two models may come from two processes; each hashes in its own way by default."""
    given, settings = [str(short_zoo() / name) for name in NAMES], Settings()
    with Fetcher() as fetcher:
        opened, _ = open_readable(given[:1], fetcher, settings)
        (sample,) = sampler_of(read_headers(opened, settings), settings).samples(1)
    found = []
    for _ in range(2):
        with workers(1) as pool:
            found.append(pool.submit(stored_rows, sample).result())
    assert found[0] == found[1] == stored_rows(sample) and len(found[0]) > 40


HARD = (
    "base-a", "base-b", "base-g", "a-cpt", "a-permuted", "a-rotated", "a-newvocab", "a-normsonly",
    "a-hidprune", "a-distilled", "tie-a", "qwen-i", "moe-k", "neox-j",
)  # fmt: skip


@pytest.mark.zoo
def test_no_link_is_lost_on_the_zoo() -> None:
    """All pairs of these, with the screen and without it."""
    given = [str(ZOO / name) for name in HARD]
    relations = []
    for screened in (True, False):
        with Fetcher() as fetcher:
            found = compare_all(given, fetcher, Settings("standard"), screened=screened)
        relations.append({(one.a, one.b): one.verdict.relation for one in found.pairs})
        short = sum(VerdictReason.SHORT_LOOK in one.verdict.reasons for one in found.pairs)
        assert short > 40 if screened else not short
    assert relations[0] == relations[1] and len(relations[0]) == 91
