"""Tests as objects: ours are on the menu and have words, those of others are only shown."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from msgspec import Struct

from kinprint import extensions, text
from kinprint.lineage.battery import gather_evidence
from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import Pair
from kinprint.lineage.tests import registry
from kinprint.lineage.tests.menu import LEVELS, menu
from kinprint.lineage.tests.registry import (
    LineageTest,
    extension_test,
    lineage_test,
    own_tests,
)
from kinprint.lineage.verdict import decide
from kinprint.nulls.result import NullResult
from kinprint.records import Component, Evidence, Group, Reason, Status, Tier
from tests.lineage.made import made


def test_the_menu_has_every_exact_test_once() -> None:
    names = [entry.name for entry in menu(LEVELS[-1])]
    exact = {name for name, test in own_tests().items() if test.tier is Tier.EXACT}
    assert len(names) == len(set(names))
    assert set(names) == exact - {"files"}  # equal files are told before any test is run


def test_every_reason_and_every_entry_of_the_menu_has_a_sentence() -> None:
    known = set(text.known_keys())
    assert {reason.value for reason in Reason} <= known
    assert {f"test.{entry.name}.compares" for entry in menu(LEVELS[-1])} <= known


def test_a_name_is_taken_once() -> None:
    made_twice = lineage_test(
        "U1.blocks", group=Group.UNIT, component=None, basis=registry.Basis.OPEN,
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"U1\.blocks"):
        made_twice(lambda pair, test: test.no_result(Reason.STATED, text="never"))


class Entry(Struct, frozen=True):
    """An entry point as the registry sees it."""

    name: str
    loads: Any
    value: str = "package:thing"

    def load(self) -> Any:
        return self.loads() if not isinstance(self.loads, LineageTest) else self.loads


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Entry]]:
    found: list[Entry] = []
    monkeypatch.setattr(extensions, "entry_points", lambda group: found)
    monkeypatch.setattr(extensions, "_LOADED", {})
    yield found


def shown(entry: str) -> Evidence:
    evidence = gather_evidence(Pair(made(1), made(2)))
    return next(one for one in evidence if one.test == entry)


def stop() -> Any:
    raise SystemExit(3)


def nothing() -> Any:
    raise ModuleNotFoundError("no module named torch")


@extension_test("acme.rows", component=Component.FEED_FORWARD)
def boasting(pair: Pair, test: LineageTest) -> Evidence:
    """Says what nobody may say from outside: exact, and with fields that rules read."""
    result = NullResult(9.0, -300.0, "signs", -300.0, 1.0, 64)
    found = test.evidence(
        result, roles=("up",), alignment_quality=3.0, gain_spread=0.5,
        by_layer=((0, 1.0), (1, 0.0)),
    )  # fmt: skip
    return Evidence(
        **{name: getattr(found, name) for name in Evidence.__struct_fields__}
        | {"test": "U1.blocks", "tier": Tier.EXACT}
    )


@extension_test("acme.broken")
def broken(pair: Pair, test: LineageTest) -> Evidence:
    raise ZeroDivisionError("by nothing")


@extension_test("acme.odd")
def odd(pair: Pair, test: LineageTest) -> Evidence:
    return 0.5  # type: ignore[return-value]


@extension_test("acme.vague")
def vague(pair: Pair, test: LineageTest) -> Evidence:
    return Evidence(test.name, test.tier, test.group, "fine")  # type: ignore[arg-type]


@extension_test("acme.mute")
def mute(pair: Pair, test: LineageTest) -> Evidence:
    """Has a reason that no catalogue has a sentence for."""
    return test.no_result(text.message("acme.reason"))


@extension_test("U1.blocks")
def claiming(pair: Pair, test: LineageTest) -> Evidence:
    return boasting.run(pair)


def test_a_test_from_outside_is_shown_and_changes_nothing_else(entries: list[Entry]) -> None:
    pair, charge = Pair(made(1), made(2)), Charge.for_menu(menu())
    without = gather_evidence(pair)
    extensions._LOADED.clear()
    entries.append(Entry("acme.rows", boasting))
    evidence = gather_evidence(pair)
    assert evidence[:-1] == without
    assert (evidence[-1].test, evidence[-1].tier) == ("acme.rows", Tier.EXTENSION)
    assert evidence[-1].log10_p == -300.0
    assert decide(evidence, charge) == decide(without, charge)
    read_by_rules = ("alignment_quality", "gain_spread", "agreement")
    assert [getattr(evidence[-1], name) for name in read_by_rules] == [None] * 3
    assert evidence[-1].by_layer == ()


@pytest.mark.parametrize(
    ("entry", "name", "said"),
    [
        (Entry("acme.broken", broken), "acme.broken", "ZeroDivisionError: by nothing"),
        (Entry("acme.odd", odd), "acme.odd", "float is no Evidence"),
        (Entry("acme.vague", vague), "acme.vague", "'fine' is not a valid Status"),
        (Entry("acme.mute", mute), "acme.mute", "acme.reason"),
        (Entry("acme.none", nothing), "acme.none", "no module named torch"),
        (Entry("acme.stop", stop), "acme.stop", "SystemExit"),
        (Entry("acme.thing", lambda: 3), "acme.thing", "package:thing"),
        (Entry("acme.taken", claiming), "acme.taken (package:thing)", "U1.blocks"),
    ],
    ids=lambda value: value.name if isinstance(value, Entry) else "",
)
def test_what_fails_is_shown_with_its_reason(
    entries: list[Entry], entry: Entry, name: str, said: str
) -> None:
    entries.append(entry)
    found = shown(name)
    assert (found.tier, found.status) == (Tier.EXTENSION, Status.UNDEFINED)
    assert said in str(found.reason)


def test_a_package_that_does_not_finish_loading_is_left_behind(
    entries: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "LOADING_SECONDS", 0.01)
    done = Event()
    entries.append(Entry("acme.slow", done.wait))
    try:
        assert "took more than 0.01 seconds" in str(shown("acme.slow").reason)
    finally:
        done.set()


def test_nothing_is_loaded_before_a_comparison_asks(entries: list[Entry]) -> None:
    loaded: list[str] = []

    def load() -> LineageTest:
        loaded.append("now")
        return boasting

    entries.append(Entry("acme.rows", load))
    assert own_tests() and menu() and not loaded
    for _ in range(2):
        assert shown("acme.rows").tier is Tier.EXTENSION
    assert loaded == ["now"]
