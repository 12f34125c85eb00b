"""What kind of relation two linked models have: read from sizes of effects, never from p-values.

That two models are linked is decided before, in `verdict.py`, from p-values. What the link means
is decided here, by `kind_of_relation`:

| relation    | what decides                                                                 |
|-------------|------------------------------------------------------------------------------|
| `derived`   | matrices of the layers are linked, and learnt-only parameters, leading       |
|             | directions, single layers or the matrices themselves are more alike than an  |
|             | initialisation makes them                                                    |
| `same-init` | matrices of the layers are linked, and learnt-only parameters are not alike: |
|             | the last rule of `kind_of_relation`                                          |
| `partial`   | matrices of the layers were read and are not linked; norms or embedding are  |
| `dependent` | linked, and nothing tells which of the above                                 |

`identical` (equal files or numbers), `no-evidence` and `untestable` are decided in `verdict.py`.

At width 4096 a correlation of 0.05 is already significant beyond doubt, so that sizes count. The
limits below were measured with `benchmarks.calibration`, which trains small models (width 128, 6
layers; 112 pairs of one initialisation and 112 of a parent and its descendants, over rates and
lengths of training), and 332 further models of thirteen architectures and three optimisers.

- *Learnt-only parameters* (norm gains, biases) start at a constant, so what they share was learnt
  together. Trained apart from one initialisation, gains correlate up to 0.33 on other data; on the
  same data in another order up to 0.52 layer by layer and 0.73 averaged over the depth. Descendants
  keep 0.66 and more layer by layer, 0.71 and more averaged, through continued training twice as
  long as pre-training. The further models drew the two together: pairs of one initialisation on the
  same data reached 0.73 layer by layer and 0.87 averaged (phi, GPT-NeoX), so that between about 0.6
  and 0.75 gains alone cannot tell. The limits favour what is common: descendants are, pairs of one
  initialisation on the same data are not.
- *Leading directions* of feed-forward matrices are learnt, while initial noise is spread evenly:
  those of one model live on in its descendants at 0.87 and more of their strength, in pairs of one
  initialisation at 0.73 and less (0.81 once), averages with a stranger apart. They are asked where
  all units of a layer were read, and overrule gains below 0.90; not where hardly trained models
  agree anyway, nor where no direction stands out of the noise: Muon evens out its updates, and its
  pairs of one initialisation on the same data stay as alike as descendants (gains 0.84, matrices
  0.92).
- *Layers* of one initialisation are all alike, more or less (least over largest 0.29 and more),
  while models put together of several parents have layers that share nothing (0.01 and less).
- *Matrices of the layers* of one initialisation correlate up to 0.37 to 0.70 once their gains have
  moved by 3 %, by architecture and first weights. They decide alone only where learnt-only
  parameters cannot tell: folded away, constant, rewritten, trained anew, or renamed with the
  channels.
- Where matrices of the layers were read, `derived` needs one of them; if only norms or embeddings
  are shared the relation is `partial`. Where none was read, norms that certainly were learnt
  together are enough, with a reason that says so. A part that was made anew beside shared layers
  (attention, vocabulary) leaves the relation `derived`, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kinprint.lineage.tests.registry import Likeness, registered_test
from kinprint.records import Component, Evidence, Group, Relation, Status, VerdictReason

DESCENDANT_GAINS, DESCENDANT_MEAN_GAINS = 0.68, 0.90
"""Correlations of learnt-only parameters, layer by layer or averaged over the depth, from which on
models were learnt together; same-init pairs that saw the same data reach them now and then."""
CERTAIN_GAINS = 0.90
"""The same that no same-init pairs but those of one order of data reach: enough where nothing but
norms was read, and whatever leading directions say; below it, more is read."""
GAINS_WITHOUT_DIRECTIONS = 0.85
"""The same, layer by layer, where leading directions do not stand out: an optimiser that evens out
its updates lets same-init pairs agree nearly as long as descendants do."""
SAME_INIT_GAINS = 0.45
"""Below this correlation of learnt-only parameters, matrices that agree mean one initialisation;
between this and the limits above nobody can tell."""
DESCENDANT_MATRICES, DESCENDANT_MATRICES_FAR = 0.60, 0.45
"""Correlations of feed-forward matrices that are beyond same-init pairs: in general, and where
gains moved by `TRAINED_FAR` as they do in large models, which leaves less of the first weights."""
TRAINED, TRAINED_FAR, TRAINED_MATRICES = 0.03, 0.10, 0.85
"""How far gains of trained models move from their start, as a share of it; those that moved by
the first were trained so long that matrices of same-init pairs agree less than the last."""
HARDLY_TRAINED = 0.005
"""Gains that moved less than this, if at all, belong to models that were hardly trained."""
GAINS_BEHIND = 0.10
"""How far learnt-only parameters may fall behind the matrices in a descendant."""
KEPT_DIRECTIONS = 0.85
"""Strength of one model's leading directions in the other: descendants are above, models that
share an initialisation below."""
DESCENDANT_VALUES = 0.90
"""Correlation of values and outputs of attention, if nothing else of the layers is linked: those of
same-init pairs stay alike for longest."""
UNSHARED_LAYER, SHARED_LAYER = 0.05, 0.3
"""Likeness of a layer, as a share of the largest, up to which it shares nothing and from which on
it is shared. In same-init pairs all layers are shared, more or less."""
SHARED_EMBEDDING = 0.85
"""Correlation of embedding columns that same-init pairs do not reach: rare tokens hardly move."""
LEARNT_NEIGHBOURS = 0.05
"""Correlation of gains in neighbouring layers below which they do not look learnt."""

LAYERS = (Component.ATTENTION, Component.FEED_FORWARD)
"""Parts that are matrices of the layers."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the rules ask of the evidence of two linked models.

    Attributes
    ----------
    shared, unshared
        Parts that a significant test is about, and parts that only other tests are about.
    layers_tested
        Whether any test is about matrices of the layers.
    matrices
        Correlation of matrices of the layers; NaN where none of them tells it.
    values_only
        Whether that is known of values and outputs of attention alone.
    shared_layers
        Mean likeness of the shared layers, where others share nothing; None where none does.
    embedding
        Correlation of embedding columns; 0 where it is not significant.
    gains, mean_gains
        Correlation of learnt-only parameters, layer by layer and averaged over the depth; minus
        infinity where nothing tells it.
    channels_aligned
        Whether channels of equal number belong together.
    gains_look_learnt
        Whether gains of neighbouring layers resemble each other; None where nobody looked.
    gain_spread
        How far gains have moved from their start; 0 where nobody looked.
    leading_directions
        How strongly one model's leading directions live on in the other; None if not known.
    directions_flat
        Whether no direction stands out of the noise.
    """

    shared: tuple[Component, ...]
    unshared: tuple[Component, ...]
    layers_tested: bool
    matrices: float
    values_only: bool
    shared_layers: float | None
    embedding: float
    gains: float
    mean_gains: float
    channels_aligned: bool
    gains_look_learnt: bool | None
    gain_spread: float
    leading_directions: float | None
    directions_flat: bool

    @property
    def best_gains(self) -> float:
        """The larger correlation of learnt-only parameters; minus infinity where there is none."""
        return max(self.gains, self.mean_gains)

    @property
    def gains_of_descendants(self) -> bool:
        """Whether learnt-only parameters are more alike than one initialisation makes them."""
        limit = GAINS_WITHOUT_DIRECTIONS if self.directions_flat else DESCENDANT_GAINS
        return self.gains >= limit or self.mean_gains >= DESCENDANT_MEAN_GAINS

    @property
    def matrices_of_descendants(self) -> bool:
        """Whether matrices of the layers are more alike than one initialisation leaves them."""
        if self.values_only:
            return self.matrices >= DESCENDANT_VALUES
        far = self.gain_spread >= TRAINED_FAR
        return self.matrices >= (DESCENDANT_MATRICES_FAR if far else DESCENDANT_MATRICES)

    @property
    def gains_behind(self) -> bool:
        """Whether learnt-only parameters are less alike than the matrices of a descendant allow."""
        return self.best_gains < self.matrices - GAINS_BEHIND

    @property
    def hardly_trained(self) -> bool:
        """Whether gains have hardly moved from their start."""
        return 0.0 < self.gain_spread < HARDLY_TRAINED

    @property
    def still_initial(self) -> bool:
        """Whether so little was trained that matrices of any same-init pair would agree."""
        return 0.0 < self.gain_spread < TRAINED and self.matrices >= TRAINED_MATRICES


@dataclass(frozen=True, slots=True)
class Kind:
    """A relation of linked models, the steps that led to it, and parts that were made anew."""

    relation: Relation
    reasons: tuple[VerdictReason, ...]
    unshared: tuple[Component, ...] = ()


def kind_of_relation(found: Findings) -> Kind:
    """The relation of two linked models, and why; the first rule that applies decides."""
    if not any(part in LAYERS for part in found.shared):
        return _outside_layers(found)

    def kind(relation: Relation, *reasons: VerdictReason) -> Kind:
        return Kind(relation, reasons, _made_anew(found))

    gains = found.best_gains
    # Where units of a layer were renamed, its gains agree no less than those of others.
    mixed = found.shared_layers is not None and found.shared_layers >= DESCENDANT_MATRICES
    trained = not found.still_initial and not found.hardly_trained
    if mixed and trained and gains >= SAME_INIT_GAINS:
        return kind(Relation.DERIVED, VerdictReason.LAYERS_MIXED)
    directions = None if found.still_initial else found.leading_directions
    if directions is not None and directions >= KEPT_DIRECTIONS:
        return kind(Relation.DERIVED, VerdictReason.LEADING_KEPT)
    if found.gains_of_descendants and not found.gains_behind:
        if gains >= CERTAIN_GAINS:
            return kind(Relation.DERIVED, VerdictReason.LEARNT_TOGETHER)
        if directions is not None:
            likely, apart = VerdictReason.LEARNT_LIKELY, VerdictReason.LEADING_APART
            return kind(Relation.DEPENDENT, likely, apart)
        return kind(Relation.DERIVED, VerdictReason.LEARNT_LIKELY)
    if no_gains := _why_gains_cannot_tell(found):
        undecided = directions is not None or found.directions_flat or found.hardly_trained
        if found.matrices_of_descendants and not undecided:
            return kind(Relation.DERIVED, no_gains, VerdictReason.MATRICES_ALIKE)
        return kind(Relation.DEPENDENT, no_gains, VerdictReason.MATRICES_WEAK)
    if gains >= SAME_INIT_GAINS:
        if found.gains_behind:
            return kind(Relation.DEPENDENT, VerdictReason.LEARNT_BEHIND)
        return kind(Relation.DEPENDENT, VerdictReason.LEARNT_BETWEEN)
    if Component.FEED_FORWARD in found.unshared:
        # One initialisation is shared by all parts; attention from elsewhere is not.
        return kind(Relation.DEPENDENT, VerdictReason.LEARNT_APART)
    return Kind(Relation.SAME_INIT, (VerdictReason.LEARNT_APART,))


def _why_gains_cannot_tell(found: Findings) -> VerdictReason | None:
    """Why learnt-only parameters cannot tell a descendant from a same-init pair; None if they can.

    Matrices that agree closely where trained gains do not leave no room for long training from
    one start: the gains were trained anew.
    """
    if found.gains_look_learnt is False:
        return VerdictReason.LEARNT_REWRITTEN
    if not math.isfinite(found.best_gains) or not found.channels_aligned:
        return VerdictReason.LEARNT_SILENT
    overtaken = found.gains_behind and found.matrices >= TRAINED_MATRICES
    if overtaken and found.gain_spread >= TRAINED and not found.directions_flat:
        return VerdictReason.LEARNT_ANEW
    return None


def _outside_layers(found: Findings) -> Kind:
    """The relation where no matrix of the layers is known to be shared."""
    norms, embedding = Component.NORMS in found.shared, Component.EMBEDDING in found.shared
    weak = VerdictReason.WEAK_OUTSIDE_LAYERS
    if not found.layers_tested:
        if norms and found.best_gains >= CERTAIN_GAINS:
            # learnt together, and nothing was read that could say that it stops there
            reasons = VerdictReason.LEARNT_TOGETHER, VerdictReason.LAYERS_NOT_READ
            return Kind(Relation.DERIVED, reasons)
        return Kind(Relation.DEPENDENT, (weak, VerdictReason.LAYERS_NOT_READ))
    learnt = norms and found.best_gains >= SAME_INIT_GAINS
    silent = norms and not embedding and not math.isfinite(found.best_gains)
    if embedding and (learnt or found.embedding >= SHARED_EMBEDDING):
        # Gains that are learnt on one embedding agree, whoever learns them.
        reason = VerdictReason.EMBEDDING_SHARED
    elif learnt or silent:
        reason = VerdictReason.NORMS_SHARED
    else:
        return Kind(Relation.DEPENDENT, (weak, VerdictReason.LAYERS_UNSHARED))
    return Kind(Relation.PARTIAL, (reason, VerdictReason.LAYERS_UNSHARED))


def _made_anew(found: Findings) -> tuple[Component, ...]:
    """Unshared parts of which a test could tell: renamed channels silence norms and embedding."""
    return tuple(part for part in found.unshared if part in LAYERS or found.channels_aligned)


def findings_of(
    evidence: Sequence[Evidence], exact: Sequence[Evidence], significant: Sequence[Evidence]
) -> Findings:
    """Sort evidence into what the rules ask for.

    Parameters
    ----------
    evidence
        All of it, looks that are no test included.
    exact
        Those exact tests that have a p-value.
    significant
        Those of them that reject.
    """
    shared, tested = _parts_of(significant), _parts_of(exact)
    # Values stay alike for longest, so they come second.
    matrices = _effect_of(significant, Likeness.MATRICES)
    values_only = matrices is None
    if values_only:
        matrices = _effect_of(significant, Likeness.VALUES)
    look = next((one for one in evidence if one.gain_spread is not None), None)
    neighbours = None if look is None else look.effect
    return Findings(
        shared=tuple(part for part in Component if part in shared),
        unshared=tuple(part for part in Component if part in tested - shared),
        layers_tested=any(part in tested for part in LAYERS),
        matrices=_or(matrices, math.nan),
        values_only=values_only and matrices is not None,
        shared_layers=_shared_layers(significant),
        embedding=_or(_effect_of(significant, Likeness.EMBEDDING), 0.0),
        gains=_or(_effect_of(exact, Likeness.GAINS), -math.inf),
        mean_gains=_or(_effect_of(exact, Likeness.MEAN_GAINS), -math.inf),
        channels_aligned=any(one.group == Group.RESIDUAL for one in significant),
        gains_look_learnt=None if neighbours is None else neighbours >= LEARNT_NEIGHBOURS,
        gain_spread=_or(None if look is None else look.gain_spread, 0.0),
        leading_directions=_leading(evidence) if Component.FEED_FORWARD in shared else None,
        directions_flat=any(
            one.status == Status.UNDEFINED and _is(one, Likeness.LEADING_DIRECTIONS)
            for one in evidence
        ),
    )


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _parts_of(evidence: Sequence[Evidence]) -> set[Component]:
    """The parts that some tests are about, those that mix several apart."""
    parts = {registered_test(one).component for one in evidence if one.roles}
    return {part for part in parts if part is not None}


def _is(evidence: Evidence, likeness: Likeness) -> bool:
    return registered_test(evidence).likeness is likeness


def _effect_of(evidence: Sequence[Evidence], likeness: Likeness) -> float | None:
    """The largest effect of the tests of some likeness: what was not read only lowers it."""
    effects = [one.effect for one in evidence if _is(one, likeness)]
    return max((effect for effect in effects if effect is not None), default=None)


def _shared_layers(significant: Sequence[Evidence]) -> float | None:
    """Mean likeness of the shared layers where others share nothing; None where none does."""
    layers = [value for one in significant for _, value in one.by_layer]
    top = max(layers, default=0.0)
    if top <= 0 or not any(value <= UNSHARED_LAYER * top for value in layers):
        return None
    shared = [value for value in layers if value >= SHARED_LAYER * top]
    return math.fsum(shared) / len(shared)


def _leading(evidence: Sequence[Evidence]) -> float | None:
    """How strongly one model's leading directions live on in the other; None if not known.

    A low value means nothing where experts were split or merged.
    """
    for one in evidence:
        if one.one_to_one is not None and one.effect is not None:
            return one.effect if one.effect >= KEPT_DIRECTIONS or one.one_to_one else None
    return None
