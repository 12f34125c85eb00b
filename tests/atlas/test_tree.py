"""Families of an atlas: pairs by keys, who names whom, and what tells a direction."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

import kinprint
from kinprint.atlas import pairs as pairing
from kinprint.atlas.edges import Edge, edges_of
from kinprint.atlas.naming import Named, NamedParent
from kinprint.atlas.pairs import candidate_pairs, groups, pieces
from kinprint.atlas.store import Atlas, Entry
from kinprint.atlas.tree import Link, Node, Tree, _claim, _stand_ins, _with_stand_ins, tree_of
from kinprint.diff.direction import Direction, TraceFound
from kinprint.lineage.about.claims import Claim
from kinprint.records import (
    ALPHA,
    Amount,
    ClaimedEdge,
    DeclaredState,
    DirectionBasis,
    ModelRef,
    Precedence,
    Relation,
    Trace,
    Verdict,
)
from kinprint.report.trees import sentences
from kinprint.text import message
from tests.lineage.stored_models import LLAMA, llama, stored

Array = NDArray[Any]
LAYERS = 2


def tuned(tensors: Mapping[str, Array], seed: int) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    return {
        name: (one + 0.2 * chance.normal(size=one.shape)).astype(np.float32)
        for name, one in tensors.items()
    }


def store(folder: Path, tensors: Mapping[str, Array]) -> Path:
    stored(folder, dict(tensors), {**LLAMA, "num_hidden_layers": LAYERS})
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base with two tunes, what was mixed from these, and a stranger."""
    folder = tmp_path_factory.mktemp("models")
    base = llama(1, layers=LAYERS)
    one, other = tuned(base, 11), tuned(base, 12)
    store(folder / "base", base)
    store(folder / "one", one)
    store(folder / "other", other)
    store(folder / "mixed", {name: 0.6 * one[name] + 0.4 * other[name] for name in base})
    store(folder / "stranger", llama(2, layers=LAYERS))
    card = f"---\nbase_model:\n- demo/one\n- {folder.name}/stranger\n- demo/stranger\n---\n"
    (folder / "mixed" / "README.md").write_text(card)
    return folder


@pytest.fixture(scope="module")
def atlas(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("atlas")
    kinprint.Atlas(place).build([models])
    return place


@pytest.fixture(scope="module")
def tree(atlas: Path) -> Tree:
    return tree_of(Atlas(str(atlas)))


def name(node: Node) -> str:
    return Path(node.entry.ref.name).name


def ends(tree: Tree) -> dict[tuple[str, str], Edge]:
    return {(name(tree.nodes[one.a]), name(tree.nodes[one.b])): one for one in tree.edges}


def test_a_family_has_its_edges_and_no_stranger(tree: Tree) -> None:
    (family,) = tree.families
    assert {name(tree.nodes[at]) for at in family} == {"base", "one", "other", "mixed"}
    found = {frozenset(both) for both in ends(tree)}
    assert found == {
        frozenset(both)
        for both in (("base", "one"), ("base", "other"), ("one", "mixed"), ("other", "mixed"))
    }


def test_a_mixture_comes_after_its_parents_with_their_weights(tree: Tree) -> None:
    for parent, share in (("one", 0.6), ("other", 0.4)):
        edge = ends(tree)[parent, "mixed"]
        assert edge.basis is DirectionBasis.BETWEEN
        assert edge.weight == pytest.approx(share, abs=0.01)


def test_all_pairs_are_paid_for(tree: Tree) -> None:
    assert (tree.pairs, tree.compared) == (10, 10)
    assert tree.alpha == ALPHA
    linked: list[Edge | Link] = [*tree.edges, *tree.links]
    for one in linked:
        assert one.log10_p == pytest.approx(one.verdict.log10_p + 1.0)


def test_of_many_pairs_each_has_its_part_of_the_error(
    atlas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinprint.atlas.identify.FAMILY", 1e-8)
    monkeypatch.setattr("kinprint.atlas.tree.candidate_pairs", lambda *given: ([], []))
    assert tree_of(Atlas(str(atlas))).alpha == pytest.approx(1e-9)


def test_what_is_declared_stands_beside_what_is_found(models: Path, tree: Tree) -> None:
    (mixed,) = (node for node in tree.nodes if name(node) == "mixed")
    assert {claim.model: state for claim, state in mixed.declared} == {
        "demo/one": DeclaredState.LINKED,
        f"{models.name}/stranger": DeclaredState.UNLINKED,
        "demo/stranger": DeclaredState.NOT_IN_ATLAS,  # another one may be meant
    }
    claims = {both: edge.claim for both, edge in ends(tree).items()}
    assert claims["one", "mixed"] is ClaimedEdge.AGREED
    assert claims["other", "mixed"] is ClaimedEdge.CONTRADICTED


def elsewhere(task: Any, given: Iterable[Any], /) -> Iterator[tuple[Any, Any]]:
    """A pool that hands over what it would to another process."""

    def sent(value: Any) -> Any:
        return pickle.loads(pickle.dumps(value))

    for one in reversed(list(given)):
        yield one, sent(sent(task)(sent(one)))


def test_pieces_of_work_can_be_done_elsewhere_in_any_order(
    atlas: Path, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "_PAIRS", 3)
    monkeypatch.setattr(pairing, "_ASKED", 2)
    found = tree_of(Atlas(str(atlas)), pool=elsewhere)
    assert found.edges == tree.edges and found.compared == tree.compared


@pytest.mark.parametrize("count", [0, 1])
def test_without_two_models_there_is_nothing_to_compare(
    models: Path, tmp_path: Path, count: int
) -> None:
    if count:
        kinprint.Atlas(tmp_path).build([models / "base"])
    found = kinprint.Atlas(tmp_path).tree()
    assert len(found.models) == count and not found.families and not found.edges
    assert "no two models" in found.summary


def test_a_broken_fingerprint_is_told_and_the_rest_goes_on(models: Path, tmp_path: Path) -> None:
    atlas = kinprint.Atlas(tmp_path)
    added = atlas.build([models / "base", models / "one", models / "other"])
    file = tmp_path / "fingerprints" / f"{added[2].id}.parquet"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 3] ^= 255  # its keys, which stand at the end, can be read
    file.write_bytes(bytes(raw))
    found = atlas.tree()
    assert [one.entry for one in found.document.left_out] == [added[2].id]
    assert [one.title for one in found.models] == ["base", "one"]
    assert len(found.edges) == 1
    assert not any("by keys alone" in said for said in sentences(found.document, "en"))


def test_other_seeds_and_copies_are_told(models: Path, tmp_path: Path) -> None:
    atlas = kinprint.Atlas(tmp_path / "atlas")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in (models / "base").iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    atlas.build([models / "base", copy, models / "stranger"])
    atlas.build([models / "one"], seed=1)
    found = atlas.tree()
    assert found.document.other_seeds == 1 and found.document.seed == 0
    assert [len(one.copies) for one in found.models if one.title in ("base", "copy")] == [1]
    assert len(found.models) == 2 and found.pairs == 1
    assert [one.title for one in atlas.tree(seed=1).models] == ["one"]


def test_a_result_is_written_in_all_forms_and_comes_back(atlas: Path, tmp_path: Path) -> None:
    found = kinprint.Atlas(atlas).tree()
    endings = ("json", "html", "svg", "graphml", "csv")
    files = found.save(*(tmp_path / f"tree.{one}" for one in endings))
    assert kinprint.FamilyTree.load(files[0]) == found
    assert all("mixed" in file.read_text() for file in files)
    assert found.to_frame().shape[0] == len(found.edges) + len(found.links)
    assert "mixed" in found._repr_html_()
    with pytest.raises(kinprint.BadOption):
        found.save(tmp_path / "tree.png")


# Of keys and pieces of work.


def test_strangers_by_keys_are_compared_with_the_nearest_alone(
    atlas: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, _ = Atlas(str(atlas)).index()
    places = [Path(one.ref.name).name for one in index.entries()]
    found, _ = candidate_pairs(Atlas(str(atlas)), index, np.ones(len(index), bool), 3)
    named = {frozenset((places[one], places[other])) for one, other in found}
    family = {"base", "one", "other", "mixed"}
    assert {frozenset(both) for both in combinations(family, 2)} <= named
    assert sum("stranger" in both for both in named) == 1


def test_pieces_hold_every_pair_once_and_few_models() -> None:
    chance = np.random.default_rng(3)
    given = {tuple(sorted(chance.choice(300, 2, replace=False).tolist())) for _ in range(900)}
    names = [f"{at}" for at in range(300)]
    found = list(pieces(sorted(given), names))
    assert sorted((int(a), int(b)) for piece in found for a, b in piece.pairs) == sorted(given)
    assert all(len({one for both in piece.pairs for one in both}) <= 48 for piece in found)


def test_models_of_small_groups_are_read_once() -> None:
    given = [(3 * at, 3 * at + 1) for at in range(40)] + [(3 * at, 3 * at + 2) for at in range(40)]
    found = list(pieces(given, [f"{at}" for at in range(120)]))
    reads = sum(len({one for both in piece.pairs for one in both}) for piece in found)
    assert reads <= 120 + len(found)


def test_groups_are_what_pairs_join() -> None:
    assert groups([(0, 1), (3, 4), (4, 2)], 6) == [[2, 3, 4], [0, 1], [5]]
    assert groups([], 2) == [[0], [1]]


# Of directions: models 0, 1, 2 ... with likenesses, and whom each names.


def trace(kind: Trace, **fields: object) -> TraceFound:
    says = message(f"report.direction.{kind}.a-first", **fields)
    return TraceFound(kind, Precedence.A_FIRST, says)


TRACED = (trace(Trace.DATES, early="1", late="2"), trace(Trace.VOCABULARY, count=1))


def said(
    names: Mapping[int, list[int]],
    *,
    weights: Mapping[int, list[float]] | None = None,
    directions: Mapping[tuple[int, int], Direction] | None = None,
    likeness: Mapping[tuple[int, int], float] | None = None,
    claims: Mapping[int, str] | None = None,
    equal: Collection[tuple[int, int]] = (),
) -> dict[tuple[int, int], Edge]:
    """The edges among models that name others; all pairs are linked."""
    count = 1 + max(max((own, *given)) for own, given in names.items())
    linked = {
        both: Verdict(
            Relation.IDENTICAL if both in equal else Relation.DERIVED,
            -50.0,
            ALPHA,
            amount=Amount(1.0, 1.0, (likeness or {}).get(both, 0.5)),
        )
        for both in combinations(range(count), 2)
    }
    nodes = [
        Node(
            Entry(
                f"{at}", ModelRef(f"m/{at}", "hub", f"m/{at}"), 0, "", f"{at}",
                (Claim("README.md", one),) if (one := (claims or {}).get(at)) else (),
            )
        )
        for at in range(count)
    ]  # fmt: skip
    told = {
        own: Named(
            tuple(
                NamedParent(
                    f"{to}",
                    (directions or {}).get((own, to), Direction(Precedence.UNDECIDED)),
                    (weights or {})[own][at] if own in (weights or {}) else None,
                )
                for at, to in enumerate(given)
            )
        )
        for own, given in names.items()
    }
    edges = edges_of(linked, told, {f"{at}": at for at in range(count)})
    return {(one.a, one.b): replace(one, claim=_claim(one, nodes)) for one in edges}


STAR = {0: [3], 1: [3], 2: [3], 3: [0], 4: [3]}
"""Four models that name a fifth, which names one of them."""


def test_two_models_alone_have_no_direction() -> None:
    (edge,) = said({0: [1], 1: [0]}).values()
    assert edge.basis is None and edge.votes == (0, 0)


def test_a_model_that_several_name_is_the_likely_parent() -> None:
    found = said(STAR)
    assert found.keys() == {(3, 0), (3, 1), (3, 2), (3, 4)}
    assert {one.basis for one in found.values()} == {DirectionBasis.CENTRAL}
    assert all(one.basis is not None and one.basis.likely for one in found.values())


def test_traces_come_before_the_shape_of_a_family() -> None:
    found = said(
        STAR,
        directions={(0, 3): Direction(Precedence.A_FIRST, TRACED)},
    )
    assert found[0, 3].basis is DirectionBasis.TRACES
    assert [one.speaks for one in found[0, 3].traces] == [Precedence.A_FIRST] * 2


def test_a_single_trace_that_contradicts_the_shape_leaves_it_open() -> None:
    one = Direction(Precedence.UNDECIDED, TRACED[:1])
    found = said(STAR, directions={(0, 3): one, (3, 0): one.swapped})
    assert found[0, 3].basis is None


def test_a_circle_is_never_directed() -> None:
    first = Direction(Precedence.B_FIRST, tuple(one.swapped for one in TRACED))
    found = said({0: [1], 1: [2], 2: [0]}, directions={(0, 1): first, (1, 2): first, (2, 0): first})
    assert len(found) == 3 and all(one.basis is None for one in found.values())


def test_a_model_of_a_mixture_with_a_negative_weight_is_no_parent() -> None:
    found = said({0: [1, 2], 1: [0, 2], 2: [0]}, weights={0: [0.6, 0.4], 1: [1.7, -0.7]})
    assert found.keys() == {(1, 0), (1, 2), (2, 0)}
    assert {found[both].basis for both in ((1, 0), (2, 0))} == {DirectionBasis.BETWEEN}
    assert [found[both].weight for both in ((1, 0), (2, 0))] == [0.6, 0.4]
    assert found[1, 2].basis is None and found[1, 2].weight is None


def test_branches_that_a_mixture_alone_joins_are_joined() -> None:
    found = said({0: [1], 1: [0], 2: [3], 3: [2], 4: [0, 2]}, weights={4: [0.5, 0.5]},
                 likeness={(1, 3): 0.9})  # fmt: skip
    assert found.keys() == {(0, 1), (2, 3), (0, 4), (2, 4), (1, 3)}


def test_who_holds_the_others_numbers_rounded_likely_came_later() -> None:
    later = Direction(Precedence.UNDECIDED, (trace(Trace.ROUNDING),))
    found = said({0: [1], 1: [0]}, directions={(0, 1): later, (1, 0): later.swapped})
    assert found[0, 1].basis is DirectionBasis.ROUNDED and found[0, 1].basis.likely
    against = Direction(Precedence.UNDECIDED, (trace(Trace.ROUNDING), TRACED[0].swapped))
    (edge,) = said({0: [1]}, directions={(0, 1): against}).values()
    assert edge.basis is None


def test_branches_are_joined_by_what_a_copy_was_rounded_from() -> None:
    coarse = Direction(Precedence.UNDECIDED, (trace(Trace.ROUNDING).swapped,))
    found = said({0: [1], 1: [0], 2: [3], 3: [2]}, directions={(0, 1): coarse},
                 likeness={(0, 2): 0.9, (1, 2): 0.8})  # fmt: skip
    assert (1, 2) in found and (0, 2) not in found


def test_branches_that_name_each_other_are_joined_and_point_away() -> None:
    found = said({**STAR, 5: [6], 6: [5]}, likeness={(3, 6): 0.9})
    assert found[3, 6].basis is DirectionBasis.CENTRAL  # four name the one, 5 alone the other
    assert found[6, 5].basis is DirectionBasis.ONE_PARENT
    assert len(found) == 6


@pytest.mark.parametrize("alike", [None, 5, 6])
def test_of_two_that_would_be_the_parent_the_most_alike_is(alike: int | None) -> None:
    """And none where they are as alike: the order of models tells nothing."""
    names = {**STAR, 5: [3], 6: [3], 7: [5, 6]}
    found = said(names, likeness={} if alike is None else {(alike, 7): 0.9})
    told = [both for both, one in found.items() if one.basis is DirectionBasis.ONE_PARENT]
    assert told == ([] if alike is None else [(alike, 7)])


def test_who_names_several_has_no_direction_from_the_others_of_these() -> None:
    found = said({**STAR, 4: [3, 5], 5: [4]})
    assert found[3, 4].basis is DirectionBasis.CENTRAL
    assert found[4, 5].basis is None


def test_equal_models_are_nobodys_votes_and_have_no_direction() -> None:
    equal = [(0, 3), (1, 3), (2, 3)]
    found = said(STAR, equal=equal)
    assert all(one.basis is None for one in found.values())
    assert found[3, 4].votes == (0, 0)


def test_two_others_do_not_make_a_parent() -> None:
    found = said({0: [3], 1: [3], 2: [3], 3: [0]})
    assert found[0, 3].basis is None


def test_an_elder_that_names_a_grandchild_makes_no_edge() -> None:
    found = said({0: [3], 1: [0], 2: [0], 3: [1, 2]}, weights={3: [0.5, 0.5]})
    assert (0, 3) not in found and {(1, 3), (2, 3)} <= found.keys()


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({}, ClaimedEdge.SILENT),
        ({0: "m/3"}, ClaimedEdge.AGREED),
        ({0: "m/elsewhere"}, ClaimedEdge.CONTRADICTED),
        ({3: "m/0"}, ClaimedEdge.CONTRADICTED),  # declared the other way round
    ],
)
def test_claims_agree_are_silent_or_contradict(
    claims: Mapping[int, str], expected: ClaimedEdge
) -> None:
    found = said(STAR, claims=claims)
    assert found[3, 0].claim is expected


def test_directions_and_traces_can_be_swapped() -> None:
    one = Direction(Precedence.A_FIRST, TRACED)
    assert one.swapped.answer is Precedence.B_FIRST
    assert one.swapped.swapped == one


def test_weights_are_shown_of_all_parents_of_a_mixture_or_of_none() -> None:
    whole = said({0: [1, 2]}, weights={0: [0.6, 0.4]})
    assert {one.weight for one in whole.values()} == {0.6, 0.4, None}
    earlier = Direction(Precedence.A_FIRST, TRACED)
    found = said({0: [1, 2]}, weights={0: [0.6, 0.4]}, directions={(0, 1): earlier})
    assert found[0, 1].basis is DirectionBasis.TRACES
    assert all(one.weight is None for one in found.values())


@pytest.mark.parametrize(
    "turned",
    [
        (0.64, 0.43),
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ((0.7, 0.3), (0.4, 0.65), (0.52, 0.46))
        ),
    ],
)
def test_two_merges_of_the_same_models_have_these_as_parents(
    tmp_path: Path, turned: tuple[float, float]
) -> None:
    one, other = tuned(llama(1), 61), tuned(llama(1), 62)
    made = {"one": one, "other": other}
    shares = {"half": (0.5, 0.5), "turned": turned}
    for name, (first, second) in shares.items():
        made[name] = {
            key: np.float32(first) * one[key] + np.float32(second) * other[key] for key in one
        }
    for name, tensors in made.items():
        stored(tmp_path / name, tensors)
    atlas = kinprint.Atlas(tmp_path / "atlas")
    atlas.build([tmp_path / name for name in made])
    tree = atlas.tree()
    titles = [model.title for model in tree.models]
    weights = {
        (titles[edge.a], titles[edge.b]): round(edge.weight, 2)
        for edge in tree.edges
        if edge.weight is not None
    }
    assert weights == {
        (parent, name): share
        for name, both in shares.items()
        for parent, share in zip(("one", "other"), both, strict=True)
    }


@pytest.mark.parametrize(("own", "one", "other"), [(2, 0, 1), (0, 1, 2), (1, 0, 2)])
def test_what_a_contradicted_mixture_shows_does_not_hang_on_numbers(
    own: int, one: int, other: int
) -> None:
    first = Direction(Precedence.UNDECIDED, TRACED[:1])
    found = said(
        {own: [one, other], one: [own], other: [own]},
        weights={own: [0.5, 0.5]},
        directions={(own, one): first, (one, own): first.swapped},
    )
    assert all(edge.basis is None and edge.weight is None for edge in found.values())


def test_copies_of_a_model_change_nothing_between_others(tmp_path: Path) -> None:
    base = llama(1, layers=LAYERS)
    tunes = {f"tune-{at}": tuned(base, 80 + at) for at in range(3)}
    names = ["base", *tunes]
    for own, tensors in {"base": base, **tunes}.items():
        store(tmp_path / own, tensors)
    settings = {**LLAMA, "num_hidden_layers": LAYERS}
    copies = ["base-again", "tune-0-again", "tune-0-more"]
    for own in copies:
        tensors = base if own.startswith("base") else tunes["tune-0"]
        stored(tmp_path / own, tensors, {**settings, "note": own})
    shown = []
    for some in (names, names + copies):
        atlas = kinprint.Atlas(tmp_path / f"atlas-{len(some)}")
        atlas.build([tmp_path / one for one in some])
        tree = atlas.tree()
        titles = [one.title.removesuffix("-again").removesuffix("-more") for one in tree.models]
        shown.append(
            {
                (titles[one.a], titles[one.b], one.basis, one.votes)
                for one in tree.edges
                if one.relation is not Relation.IDENTICAL
            }
        )
    assert shown[0] == shown[1] and len(shown[0]) == len(tunes)
    equal = [one for one in tree.edges if one.relation is Relation.IDENTICAL]
    assert len(equal) == len(copies) and all(one.basis is None for one in equal)


def test_copies_that_did_not_meet_the_one_that_stands_for_them_have_an_edge() -> None:
    """A shortlist may leave such pairs out: c was compared with b alone."""
    same = Verdict(Relation.IDENTICAL, -9.0, ALPHA, (), Amount(1.0, 1.0, 1.0, 1.0))
    linked = {
        ("a", "b"): same,
        ("b", "c"): same,
        ("a", "d"): replace(same, relation=Relation.DERIVED),
    }
    assert _stand_ins(linked) == {"b": "a", "c": "a"}
    assert set(_with_stand_ins(linked, _stand_ins(linked))) == {("b", "a"), ("c", "b")}
