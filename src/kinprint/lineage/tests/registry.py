"""A test of lineage is one object: its name, what it compares, and the function that runs it.

The battery asks a test what it `needs`, the sharing map which `basis` its finding speaks for, the
verdict which `part` it is about and of what its effect is a `likeness`. Nobody else keeps lists
of names. A new test of ours is a function with the decorator `lineage_test` in one of the modules
of `_HOMES`, its share in `menu.toml`, and its words in the catalogues (`test.<name>.title` and
`test.<name>.compares`; for a new family `test.<family>.asks`).

Tests from other packages
-------------------------
A package adds a test with an entry point of the group `kinprint.tests` that names an object made
by `extension_test`::

    [project.entry-points."kinprint.tests"]
    "acme.rows" = "acme_kinprint:row_likeness"

    @extension_test("acme.rows", component=Component.FEED_FORWARD)
    def row_likeness(pair: Pair, test: LineageTest) -> Evidence:
        first, second = pair.samples
        if first.width != second.width:
            return test.no_result(Reason.MODELS_OF_ONE_WIDTH)
        return test.evidence(null_result, roles=("up",))

Such a test is run and shown in the tier `Tier.EXTENSION`. It is on no menu, has no share of the
error, and takes no part in the map and the verdict, whatever evidence it returns. If it cannot be
loaded, takes too long to load, raises an error or returns something else, the comparison goes on
and shows the test without a result, with the reason.

Stable for such a test: `pair.samples` (what was read of the two models, see
`kinprint.lineage.reading.sample.Sample`, in an order that does not depend on the order of asking),
`pair.seed`, `pair.level`; `test.evidence` with a `kinprint.nulls.result.NullResult` and
`test.no_result` with a `Reason` (`Reason.STATED` takes a sentence as the field `text`). Samples are
shared with other tests and must not be changed. Everything else may change between versions.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from kinprint.extensions import TESTS, Extension, extensions, told
from kinprint.nulls.result import NullResult
from kinprint.records import Component, Evidence, Group, Reason, Status, Tier
from kinprint.text import Message

if TYPE_CHECKING:
    from kinprint.lineage.pair import Pair

_HOMES = (
    "kinprint.lineage.tests.gains",
    "kinprint.lineage.tests.columns",
    "kinprint.lineage.tests.units",
    "kinprint.lineage.tests.attention",
    "kinprint.lineage.tests.experts",
    "kinprint.lineage.tests.invariants",
    "kinprint.lineage.tests.learnt",
    "kinprint.lineage.controls",
    "kinprint.lineage.identity",
)


class Needs(Enum):
    """What must be found before a test can run, which decides when the battery runs it."""

    NOTHING = auto()
    """Parts as they are numbered, or a matching of the test's own."""
    NUMBERS = auto()
    """Parts as they are numbered, and an alignment only where shapes do not allow that."""
    ALIGNMENT = auto()
    """The residual map and the partners that match units and heads best."""


class Basis(Enum):
    """In which basis and layers two models are alike if a test finds something."""

    OPEN = auto()
    """The finding does not tell."""
    AS_STORED = auto()
    """Channels, layers and heads as they are numbered."""
    NUMBERED = auto()
    """As they are numbered if both models have as many layers; else it does not tell."""
    NUMBERED_OR_FOUND = auto()
    """As they are numbered if both models have as many layers; else those that fit best."""
    FOUND = auto()
    """The basis and the layers that fit best."""


class Likeness(Enum):
    """What the effect of a test is the likeness of, where rules and trees ask for it."""

    MATRICES = auto()
    """Matrices of the layers; rows that were not read only lower it."""
    VALUES = auto()
    """Values and outputs of attention, which stay alike for longest."""
    EMBEDDING = auto()
    """Columns of the embedding."""
    GAINS = auto()
    """Norm gains, layer by layer."""
    MEAN_GAINS = auto()
    """Norm gains averaged over the depth."""
    MATCH = auto()
    """How well units can be matched, above what random rows would be."""


def family_of(name: str) -> str:
    """The test of which a test with this name is a variant: what stands before the point."""
    return name.partition(".")[0]


class NoResult(Exception):
    """Raised by a part of a test where it cannot go on: the test then ends without a result."""

    def __init__(
        self, reason: Reason | Message, status: Status = Status.NEEDS, **fields: object
    ) -> None:
        super().__init__(reason)
        self.reason = reason.message(**fields) if isinstance(reason, Reason) else reason
        self.status = status


class LineageTest(Struct, frozen=True, eq=False):
    """One test, look or rule of a comparison; two are equal only if they are the same object.

    Attributes
    ----------
    name : what it is called in evidence and documents; the part before the point is its family.
    tier : what its evidence rests on. Exact tests stand on the menu.
    group : the relabellings or flips it compares with.
    component : what of a model it is about; None if it mixes several.
    needs : what must be found before it can run.
    basis : in which basis models are alike if it finds something.
    likeness : what its effect is the likeness of, where rules and trees ask for it.
    learnt : whether it compares parameters that start at a constant.
    channels_only : whether it reads gains and embeddings alone, so that its evidence holds as long
        as these are the same.
    function : runs it: the pair, the test itself, and the evidence gathered so far. None for what
        is built elsewhere.
    """

    name: str
    tier: Tier
    group: Group
    component: Component | None = None
    needs: Needs = Needs.NOTHING
    basis: Basis = Basis.OPEN
    likeness: Likeness | None = None
    learnt: bool = False
    channels_only: bool = False
    function: Callable[[Pair, LineageTest, Sequence[Evidence]], Evidence] | None = None

    @property
    def family(self) -> str:
        """The test of which this is a variant."""
        return family_of(self.name)

    def run(self, pair: Pair, evidence: Sequence[Evidence] = ()) -> Evidence:
        """Run the test on a pair; looks and rules read the evidence of the tests before them."""
        if self.function is None:
            raise TypeError(f"{self.name} is not run on a pair")
        try:
            return self.function(pair, self, evidence)
        except NoResult as stop:
            return self.no_result(stop.reason, stop.status)

    def evidence(
        self,
        result: NullResult,
        *,
        roles: Sequence[str],
        layers: Sequence[int] = (),
        effect: float | None = None,
        details: Sequence[tuple[str, float]] = (),
        **fields: Any,
    ) -> Evidence:
        """The evidence of a null result; a test with nothing to relabel is undefined.

        Parameters
        ----------
        result : statistic, p-value and null.
        roles, layers : which tensors were compared.
        effect : replaces the result's own where that is not on the scale of the test.
        details : further numbers by name, after those of the result.
        fields : further fields of `Evidence`.
        """
        if not result.n:
            return self.no_result(Reason.NOTHING_TO_RELABEL, Status.UNDEFINED)
        if not result.floor:
            return self.no_result(Reason.RELABELLING_CHANGES_NOTHING, Status.UNDEFINED)
        size = result.effect if effect is None else effect
        return Evidence(
            test=self.name,
            tier=self.tier,
            group=self.group,
            status=Status.OK,
            log10_p=min(0.0, result.log10_p),
            statistic=result.statistic,
            effect=size if math.isfinite(size) else None,
            n=result.n,
            bound=result.bound,
            floor=result.floor,
            null=result.null,
            roles=tuple(roles),
            layers=tuple(sorted(set(layers))),
            learnt=self.learnt,
            details=(*sorted(result.details.items()), *details),
            sensitivity=result.sensitivity,
            **fields,
        )

    def no_result(
        self, reason: Reason | Message, status: Status = Status.NEEDS, **fields: object
    ) -> Evidence:
        """The test without a p-value: what it needs, what is degenerate, or what guards it.

        `fields` are those of the reason's sentence.
        """
        said = reason.message(**fields) if isinstance(reason, Reason) else reason
        return Evidence(self.name, self.tier, self.group, status, reason=said)


TestFunction = Callable[["Pair", LineageTest], Evidence]
LookFunction = Callable[["Pair", LineageTest, Sequence[Evidence]], Evidence]
_REGISTERED: dict[str, LineageTest] = {}


def register(test: LineageTest) -> LineageTest:
    """Add a test of ours under its name."""
    if test.name in _REGISTERED:
        raise ValueError(f"there are two tests called {test.name}")
    _REGISTERED[test.name] = test
    return test


def lineage_test(
    name: str,
    *,
    group: Group,
    component: Component | None,
    basis: Basis,
    needs: Needs = Needs.NOTHING,
    likeness: Likeness | None = None,
    learnt: bool = False,
    channels_only: bool = False,
) -> Callable[[TestFunction], LineageTest]:
    """Make a function an exact test; the parameters are the attributes of `LineageTest`."""

    def made(function: TestFunction) -> LineageTest:
        return register(
            LineageTest(
                name, Tier.EXACT, group, component, needs, basis, likeness, learnt, channels_only,
                lambda pair, test, _: function(pair, test),
            )
        )  # fmt: skip

    return made


def look(
    name: str,
    *,
    tier: Tier,
    group: Group = Group.NONE,
    component: Component | None = None,
    likeness: Likeness | None = None,
    learnt: bool = False,
) -> Callable[[LookFunction], LineageTest]:
    """Make a function a calibrated look or a rule, which reads the evidence of the exact tests."""

    def made(function: LookFunction) -> LineageTest:
        return register(
            LineageTest(
                name, tier, group, component, likeness=likeness, learnt=learnt, function=function
            )
        )

    return made


def extension_test(
    name: str, *, group: Group = Group.NONE, component: Component | None = None
) -> Callable[[TestFunction], LineageTest]:
    """Make a function a test of another package, for an entry point to name."""

    def made(function: TestFunction) -> LineageTest:
        return LineageTest(
            name,
            Tier.EXTENSION,
            group,
            component,
            function=lambda pair, test, _: function(pair, test),
        )

    return made


@functools.cache
def own_tests() -> Mapping[str, LineageTest]:
    """Every test, look and rule of this package by its name."""
    for home in _HOMES:
        importlib.import_module(home)
    return dict(_REGISTERED)


def registered_test(evidence: Evidence) -> LineageTest:
    """The test that some evidence comes from; one without attributes if it is not ours."""
    known = own_tests().get(evidence.test)
    return known or LineageTest(evidence.test, evidence.tier, evidence.group)


def extension_tests() -> tuple[LineageTest, ...]:
    """The tests that other packages bring, loaded once, when a comparison first asks."""
    tests: dict[str, LineageTest] = {}
    for extension in extensions(TESTS, LineageTest):
        test = _usable(extension)
        if test.name in own_tests() or test.name in tests:
            name = f"{extension.name} ({extension.value})"
            test = _unusable(name, Reason.EXTENSION_NAME_TAKEN.message(name=test.name))
        tests[test.name] = test
    return tuple(tests.values())


def run_extension(pair: Pair, test: LineageTest) -> Evidence:
    """Run a test of another package; whatever it does, it gives evidence of its own tier.

    Fields that rules read are left out, so that nothing is decided by them.
    """
    try:
        return _only_shown(test, test.run(pair))
    except (Exception, SystemExit) as error:
        return test.no_result(Reason.EXTENSION_FAILED, Status.UNDEFINED, error=told(error))


def _only_shown(test: LineageTest, found: Evidence) -> Evidence:
    """What is shown of evidence from outside, each field made the kind of value that it must be."""
    if not isinstance(found, Evidence):
        raise TypeError(f"{type(found).__name__} is no Evidence")
    if found.reason is not None:
        found.reason.words()  # whoever shows it must be able to say it
    return Evidence(
        test.name,
        Tier.EXTENSION,
        Group(found.group),
        Status(found.status),
        float(found.log10_p),
        None if found.statistic is None else float(found.statistic),
        None if found.effect is None else float(found.effect),
        int(found.n),
        str(found.bound),
        float(found.floor),
        tuple(map(float, found.null)),
        tuple(map(str, found.roles)),
        tuple(map(int, found.layers)),
        found.reason,
        bool(found.learnt),
        details=tuple((str(name), float(value)) for name, value in found.details),
    )


def _usable(extension: Extension[LineageTest]) -> LineageTest:
    """The test that an entry point names; one that gives the reason if there is none."""
    if extension.thing is not None:
        return replace(extension.thing, tier=Tier.EXTENSION)
    assert extension.fault is not None
    return _unusable(extension.name, extension.fault)


def _unusable(name: str, reason: Message) -> LineageTest:
    return LineageTest(
        name, Tier.EXTENSION, Group.NONE,
        function=lambda pair, test, _: test.no_result(reason, Status.UNDEFINED),
    )  # fmt: skip
