"""What kind of origin dependent models have, read from sizes of effects and never from p-values.

At width 4096 a correlation of 0.05 is already significant beyond doubt, so that:

- *Learnt-only parameters* (norm gains, biases) start at a constant, so what they share was
  learnt together. `benchmarks.calibration` trains small models for this (width 128, 6 layers,
  112 same-init pairs and 112 of a parent and its descendants, over rates and lengths). Trained
  apart from one initialisation, gains correlate up to 0.33 on other data; on the same data in
  another order up to 0.52 layer by layer and 0.73 averaged over the depth. Descendants keep
  0.66 and more layer by layer, 0.71 and more averaged, through continued training twice as
  long as pre-training. A further 332 models of thirteen architectures and three optimisers drew
  the two together: twins on the same data reached 0.73 layer by layer and 0.87 averaged (phi,
  GPT-NeoX), so that between about 0.6 and 0.75 gains alone cannot tell. The limits favour what
  is common: descendants are, twins on the same data are not.
- *Leading directions* of feed-forward matrices are learnt, while initial noise is spread evenly:
  those of one model live on in its descendants at 0.87 and more of their strength, in twins at
  0.73 and less (0.81 once), averages with a stranger apart. They are asked where all units of a
  layer were read, and overrule gains below 0.90; not where hardly trained models agree anyway,
  nor where no direction stands out of the noise: Muon evens out its updates, and its twins on the
  same data stay as alike as descendants (gains 0.84, matrices 0.92).
- *Layers*: those of twins are all alike, more or less (least over largest 0.29 and more), while
  models put together of several parents have layers that share nothing (0.01 and less).
- *Matrices of the layers* of twins correlate up to 0.37 to 0.70 once their gains have moved by
  3 %, by architecture and first weights. They decide alone only where learnt-only parameters
  cannot speak: folded away, constant, rewritten, trained anew, or renamed with the channels.
- Where matrices of the layers were read, `derived` needs one of them; if only norms or embeddings
  are shared the relation is `partial`. Where none was read, norms that surely were learnt together
  are enough, with a reason that says so. A part that was made anew beside shared layers (attention,
  vocabulary) leaves the relation `derived`, with a reason that names it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kinprint.lineage.tests.registry import Likeness, registered_test
from kinprint.records import Evidence, Group, Part, Status

LEARNT_LAYERS, LEARNT_PROFILE = 0.68, 0.90
"""Correlations of learnt-only parameters, layer by layer or averaged over the depth, beyond which
models were learnt together; same-init pairs that saw the same data reach them now and then."""
LEARNT_SURELY = 0.90
"""The same that no twins but those of one order of data reach: enough where nothing but norms was
read, and whatever leading directions say; below it, more is read."""
LEARNT_FLAT = 0.85
"""The same, layer by layer, where leading directions do not stand out: an optimiser that evens out
its updates lets same-init pairs agree nearly as long as descendants do."""
TWINS_LEARNT = 0.45
"""Up to this correlation of learnt-only parameters, matrices that agree mean one initialisation;
between this and the limits above nobody can tell."""
SAME_INIT_MATRICES, FAR_MATRICES = 0.60, 0.45
"""Correlations of feed-forward matrices that are beyond same-init pairs: in general, and where
gains moved by `MOVED_FAR` as they do in large models, which leaves less of the first weights."""
MOVED, MOVED_FAR, MOVED_MATRICES = 0.03, 0.10, 0.85
"""How far gains of trained models move from their start, as a share of it; those that moved by
the first were trained so long that matrices of same-init pairs agree less than the last."""
BARELY = 0.005
"""Gains that moved less than this, if at all, belong to models that were hardly trained."""
BEHIND = 0.10
"""How far learnt-only parameters may fall behind the matrices in a descendant."""
LEADING_KEPT = 0.85
"""Strength of one model's leading directions in the other: descendants are above, models that
share an initialisation below."""
VALUES = 0.90
"""Correlation of values and outputs of attention, if nothing else of the layers speaks: those of
same-init pairs stay alike for longest."""
SILENT_LAYER, SHARED_LAYER = 0.05, 0.3
"""Likeness of a layer, as a share of the largest, below which it shares nothing and above which
it is shared. In same-init pairs all layers are shared, more or less."""
SAME_INIT_EMBEDDING = 0.85
"""Correlation of embedding columns that same-init pairs do not reach: rare tokens hardly move."""
LOOKS_LEARNT = 0.05
"""Correlation of gains in neighbouring layers below which they do not look learnt."""

PARTS = tuple(Part)
LAYERS = (Part.ATTENTION, Part.FEED_FORWARD)


class Case:
    """Rejected evidence, sorted into what the rules ask for."""

    def __init__(
        self, evidence: Sequence[Evidence], exact: Sequence[Evidence], found: Sequence[Evidence]
    ) -> None:
        touched = _parts_of(found)
        self.parts = tuple(part for part in PARTS if part in touched)
        heard = _parts_of(exact)
        self.unshared = tuple(part for part in PARTS if part in heard - touched)
        self.layers_heard = any(part in heard for part in LAYERS)
        # Values stay alike for longest, so they come second.
        matrices = _effect_of(found, Likeness.MATRICES)
        values = _effect_of(found, Likeness.VALUES)
        self.matrices = matrices if matrices is not None else values
        self.by_values = matrices is None and values is not None
        self.mixed = _mixed(found)
        self.columns = _effect_of(found, Likeness.EMBEDDING)
        self.learnt = _effect_of(exact, Likeness.GAINS)
        self.profile = _effect_of(exact, Likeness.MEAN_GAINS)
        self.aligned = any(one.group == Group.RESIDUAL for one in found)
        look = next((one for one in evidence if one.gain_spread is not None), None)
        neighbours = None if look is None else look.effect
        self.alike = None if neighbours is None else neighbours >= LOOKS_LEARNT
        self.moved = 0.0 if look is None else look.gain_spread or 0.0
        self.leading = _leading(evidence) if Part.FEED_FORWARD in self.parts else None
        self.flat = any(
            one.status == Status.UNDEFINED and _is(one, Likeness.LEADING_DIRECTIONS)
            for one in evidence
        )

    @property
    def best_learnt(self) -> float:
        """The largest correlation of learnt-only parameters; minus infinity where there is none."""
        return max(_or_least(self.learnt), _or_least(self.profile))

    @property
    def learnt_together(self) -> bool:
        """Whether learnt-only parameters are more alike than one initialisation makes them."""
        layers, profile = _or_least(self.learnt), _or_least(self.profile)
        limit = LEARNT_FLAT if self.flat else LEARNT_LAYERS
        return layers >= limit or profile >= LEARNT_PROFILE


def relation_of(case: Case) -> tuple[str, list[str]]:
    """The relation of two models whose labels depend on each other, and why."""
    if not any(part in LAYERS for part in case.parts):
        return _outside_layers(case)
    notes = [f"unshared:{part}" for part in case.unshared if _could_tell(case, part)]
    learnt = case.best_learnt
    matrices = case.matrices if case.matrices is not None else math.nan
    # A weak trace in the matrices is behind nothing: NaN compares as false.
    behind = learnt < matrices - BEHIND
    hardly = 0.0 < case.moved < MOVED and matrices >= MOVED_MATRICES
    kept = None if hardly else case.leading
    barely = 0.0 < case.moved < BARELY
    # Where units of a layer were renamed, its gains agree no less than those of others.
    mixed = case.mixed is not None and case.mixed >= SAME_INIT_MATRICES
    if mixed and learnt >= TWINS_LEARNT and not hardly and not barely:
        return "derived", ["layers-mixed", *notes]
    if kept is not None and kept >= LEADING_KEPT:
        return "derived", ["leading-kept", *notes]
    if case.learnt_together and not behind:
        if learnt >= LEARNT_SURELY:
            return "derived", ["learnt-together", *notes]
        if kept is not None:
            return "dependent", ["learnt-likely", "leading-apart", *notes]
        return "derived", ["learnt-likely", *notes]
    silent = _why_silent(case, learnt, behind and matrices >= MOVED_MATRICES)
    if silent:
        limit = FAR_MATRICES if case.moved >= MOVED_FAR else SAME_INIT_MATRICES
        limit = VALUES if case.by_values else limit
        if matrices >= limit and kept is None and not case.flat and not barely:
            return "derived", [silent, "matrices-alike", *notes]
        return "dependent", [silent, "matrices-weak", *notes]
    if learnt >= TWINS_LEARNT:
        return "dependent", ["learnt-behind" if behind else "learnt-between", *notes]
    if Part.FEED_FORWARD in case.unshared:
        # One initialisation is shared by all parts; attention from elsewhere is not.
        return "dependent", ["learnt-apart", *notes]
    return "same-init", ["learnt-apart"]


def _why_silent(case: Case, learnt: float, overtaken: bool) -> str:
    """Why learnt-only parameters cannot tell a descendant from a twin; empty where they can.

    `overtaken` says that matrices agree closely and gains do not: that leaves no room for long
    training from one start.
    """
    if case.alike is False:
        return "learnt-rewritten"
    if not math.isfinite(learnt) or not case.aligned:
        return "learnt-silent"
    return "learnt-anew" if overtaken and case.moved >= MOVED and not case.flat else ""


def _outside_layers(case: Case) -> tuple[str, list[str]]:
    """The relation where no matrix of the layers is known to be shared."""
    norms, embedding = Part.NORMS in case.parts, Part.EMBEDDING in case.parts
    scope = "layers-unshared" if case.layers_heard else "layers-not-read"
    if not case.layers_heard:
        if norms and case.best_learnt >= LEARNT_SURELY:
            # learnt together, and nothing was read that could say that it stops there
            return "derived", ["learnt-together", scope]
        return "dependent", ["weak-outside-layers", scope]
    learnt = norms and case.best_learnt >= TWINS_LEARNT
    if embedding and (learnt or (case.columns or 0.0) >= SAME_INIT_EMBEDDING):
        # Gains that are learnt on one embedding agree, whoever learns them.
        return "partial", ["embedding-shared", scope]
    if learnt:
        return "partial", ["norms-shared", scope]
    if norms and not embedding and not math.isfinite(case.best_learnt):
        return "partial", ["norms-shared", scope]
    return "dependent", ["weak-outside-layers", scope]


def _could_tell(case: Case, part: Part) -> bool:
    """Whether silence about a part means something: renamed channels silence norms and columns."""
    return part in LAYERS or case.aligned


def _parts_of(evidence: Sequence[Evidence]) -> set[Part]:
    """The parts that some tests are about, those that mix several apart."""
    told = {registered_test(one).part for one in evidence if one.roles}
    return {part for part in told if part is not None}


def _is(one: Evidence, likeness: Likeness) -> bool:
    return registered_test(one).likeness is likeness


def _effect_of(evidence: Sequence[Evidence], likeness: Likeness) -> float | None:
    """The largest effect of the tests of some likeness: what was not read only lowers it."""
    effects = [one.effect for one in evidence if _is(one, likeness)]
    return max((effect for effect in effects if effect is not None), default=None)


def _mixed(found: Sequence[Evidence]) -> float | None:
    """Mean likeness of the shared layers where others share nothing; None where none is silent."""
    layers = [value for one in found for _, value in one.by_layer]
    top = max(layers, default=0.0)
    if top <= 0 or not any(value <= SILENT_LAYER * top for value in layers):
        return None
    shared = [value for value in layers if value >= SHARED_LAYER * top]
    return math.fsum(shared) / len(shared)


def _or_least(value: float | None) -> float:
    return -math.inf if value is None else value


def _leading(evidence: Sequence[Evidence]) -> float | None:
    """How strongly one model's leading directions live on in the other; None if not known.

    A low value means nothing where experts were split or merged.
    """
    for one in evidence:
        if one.one_to_one is not None and one.effect is not None:
            return one.effect if one.effect >= LEADING_KEPT or one.one_to_one else None
    return None
