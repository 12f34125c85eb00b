"""The values that cross rooms: small, frozen, and free of behaviour that does I/O."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, auto

import msgspec
from msgspec import Struct, field

from kinprint.text import Message, message

ALPHA = 1e-6
"""The chance of calling strangers related, unless somebody asks for another."""
SINGLE = 32
"""Bits of a number as numbers are compared: what is stored with more digits is rounded to these."""
LARGEST_SEED = 2**53 - 1
"""The largest whole number that every reader of JSON takes for itself."""


class Relation(StrEnum):
    """How two models are related, as far as the evidence goes; never who copied from whom."""

    IDENTICAL = "identical"
    SAME_WEIGHTS = "same-weights"
    DERIVED = "derived"
    PARTIAL = "partial"
    LAUNDERED = "laundered"
    SAME_INIT = "same-init"
    DEPENDENT = "dependent"
    NO_EVIDENCE = "no-evidence"
    UNTESTABLE = "untestable"

    @property
    def linked(self) -> bool:
        """Whether something links the two; one initialisation is a link as well."""
        return self not in (Relation.NO_EVIDENCE, Relation.UNTESTABLE)


TAKEN_OVER = (
    Relation.IDENTICAL,
    Relation.SAME_WEIGHTS,
    Relation.DERIVED,
    Relation.PARTIAL,
    Relation.LAUNDERED,
)
"""Relations that say that one model has weights of the other."""
CLEAR_ANSWERS = (Relation.IDENTICAL, Relation.SAME_WEIGHTS, Relation.DERIVED)
"""Relations after which no more is read."""


class Side(StrEnum):
    """One of two models: the first or the second."""

    A = "a"
    B = "b"


class Mark(StrEnum):
    """Where a number comes from.

    Measured: from the weights of a model, or drawn at random. Reconstructed: from a replica, and
    published figures determine it or it was fitted to one. Invented: from a replica, and no
    published figure determines it.
    """

    MEASURED = "measured"
    RECONSTRUCTED = "reconstructed"
    INVENTED = "invented"


class NumberStatus(StrEnum):
    """What a number found now is worth beside a published one.

    By construction: a replica gives back what it was made from. Other pairs: the average is over
    fewer pairs than the published one, so that the two are not compared. Not determined: the
    figures that a replica was made from leave it open. Not in the replica: it has no such tensors.
    """

    MEASURED = "measured"
    BY_CONSTRUCTION = "by construction"
    OTHER_PAIRS = "other pairs"
    NOT_DETERMINED = "not determined"
    NOT_IN_REPLICA = "not in the replica"
    NOT_FOUND = "not found"


class Level(StrEnum):
    """How much of each model a comparison reads; a later level reads more."""

    QUICK = "quick"
    STANDARD = "standard"
    DEEP = "deep"


class Tier(StrEnum):
    """What a piece of evidence rests on.

    Exact: a p-value from symmetry, the only kind that decides. Calibrated: a rank among known
    strangers. Rule: a size without a p-value that tells kinds of relation apart. Extension: a
    test that another package brings, shown beside the others and never counted.
    """

    EXACT = "exact"
    CALIBRATED = "calibrated"
    RULE = "rule"
    EXTENSION = "extension"


class Status(StrEnum):
    """Whether a test gave a result, or why it has none."""

    OK = "ok"
    NEEDS = "needs"
    GUARDED = "guarded"
    UNDEFINED = "undefined"
    UNREAD = "unread"


class Group(StrEnum):
    """What a test relabels or flips in one model while the other stays as it is.

    The names are those of the symmetry tables. `NONE` and `RULE` belong to what is no test of a
    symmetry: a rank among strangers, and a size without a p-value.
    """

    RESIDUAL = "residual"
    RESIDUAL_SIGN = "residual_sign"
    UNIT = "unit"
    UNIT_SIGN = "unit_sign"
    VALUE_DIM = "value_dim"
    VALUE_SIGN = "value_sign"
    PLANE_SIGN = "plane_sign"
    PLANE_QUARTER = "plane_quarter"
    UNROTATED_SIGN = "unrotated_sign"
    EXPERT = "expert"
    NONE = "none"
    RULE = "rule"


class TensorStatus(StrEnum):
    """Whether two tensors were compared, or why not."""

    COMPARED = "compared"
    ONLY_A = "only-a"
    ONLY_B = "only-b"
    OTHER_SHAPE = "other-shape"
    OTHER_BASIS = "other-basis"
    UNREADABLE = "unreadable"
    NOT_READ = "not-read"


class MergeMethod(StrEnum):
    """How models were merged; the words are mergekit's."""

    LINEAR = "linear"
    SLERP = "slerp"
    TASK_ARITHMETIC = "task_arithmetic"
    TIES = "ties"
    DARE_LINEAR = "dare_linear"
    DARE_TIES = "dare_ties"
    PASSTHROUGH = "passthrough"

    @property
    def random(self) -> bool:
        """Whether it drops numbers at random, so that no recipe repeats it."""
        return self in (MergeMethod.DARE_LINEAR, MergeMethod.DARE_TIES)


class MergeOutcome(StrEnum):
    """What can be said of how a child was made from given models."""

    RECIPE = "recipe"
    COPY = "copy"
    OTHER = "another-merge"
    UNDECIDED = "undecided"


class MergeDoubt(StrEnum):
    """Why no recipe is given."""

    NOTHING_COMPARABLE = "nothing-comparable"
    OTHER_FORMAT = "other-format"
    NO_RECIPE = "no-recipe"
    NO_BASE = "no-base"
    PROOF_FAILED = "proof-failed"
    SAMPLED = "sampled"
    COPIED_PART = "copied-part"
    ONLY_ZEROS = "only-zeros"
    FROM_SEVERAL = "from-several"


class MergeStatus(StrEnum):
    """Whether a tensor of a child could be held against those of the models it may be from."""

    MEASURED = "measured"
    PARTLY = "partly"
    MISSING = "missing"
    OTHER_SHAPE = "other-shape"
    NOT_FINITE = "not-finite"
    UNREADABLE = "unreadable"
    NOT_READ = "not-read"


class Operation(StrEnum):
    """What can be done to a model."""

    PERMUTED = "permuted"
    ROTATED = "rotated"
    PRUNED_DEPTH = "pruned-depth"
    PRUNED_WIDTH = "pruned-width"
    PRUNED_HEADS = "pruned-heads"
    PRUNED_NUMBERS = "pruned-numbers"
    LAYERS_ZEROED = "layers-zeroed"
    EXPANDED_DEPTH = "expanded-depth"
    REORDERED = "layers-reordered"
    EXPANDED_WIDTH = "expanded-width"
    EXPANDED_VOCABULARY = "expanded-vocabulary"
    REDUCED_VOCABULARY = "reduced-vocabulary"
    TRANSPLANTED_VOCABULARY = "transplanted-vocabulary"
    UPCYCLED = "upcycled"
    REPLACED = "component-replaced"
    FROZEN = "component-frozen"
    ADAPTER = "adapter-merged"
    MERGED = "merged"
    NOISE = "noise-added"
    SCALED = "scaled"
    RESCALED = "units-rescaled"
    FINETUNE = "finetune"
    CONTINUED = "continued-pretraining"
    TRAINED = "trained-further"
    QUANTIZED = "quantized"
    CAST = "cast"
    ROUNDED_BEFORE = "rounded-before"
    NOT_FINITE = "not-finite"
    CHANGED = "changed"

    @property
    def hub(self) -> str | None:
        """What the Hub calls it in `base_model_relation`; None where it has no word."""
        return _HUB.get(self)

    @property
    def either_way(self) -> bool:
        """Whether numbers look the same whichever model came first, and of two models that were
        made from a third."""
        return self in _EITHER_WAY


_EITHER_WAY = (
    Operation.ADAPTER,
    Operation.NOISE,
    Operation.FINETUNE,
    Operation.CONTINUED,
    Operation.TRAINED,
)

_HUB = {
    Operation.ADAPTER: "adapter",
    Operation.MERGED: "merge",
    Operation.QUANTIZED: "quantized",
    **dict.fromkeys(
        (
            Operation.FINETUNE,
            Operation.CONTINUED,
            Operation.TRAINED,
            Operation.PRUNED_DEPTH,
            Operation.PRUNED_WIDTH,
            Operation.PRUNED_HEADS,
            Operation.PRUNED_NUMBERS,
            Operation.LAYERS_ZEROED,
            Operation.EXPANDED_DEPTH,
            Operation.REORDERED,
            Operation.EXPANDED_WIDTH,
            Operation.EXPANDED_VOCABULARY,
            Operation.REDUCED_VOCABULARY,
            Operation.TRANSPLANTED_VOCABULARY,
            Operation.UPCYCLED,
            Operation.REPLACED,
        ),
        "finetune",
    ),
}


class Component(StrEnum):
    """What a part of a model is made of; an expert is a feed-forward of its own.

    `HEAD` is the output matrix over the vocabulary where it is not the embedding itself, `MIXER`
    what mixes positions without attention (state spaces, convolutions), `PROJECTOR` what carries
    the output of one tower to another, `OTHER` all tensors that are none of these: tables of
    positions, patches, classifiers, tensors of unknown names.
    """

    NORMS = "norms"
    EMBEDDING = "embedding"
    ATTENTION = "attention"
    FEED_FORWARD = "feed-forward"
    EXPERT = "expert"
    ROUTER = "router"
    HEAD = "head"
    MIXER = "mixer"
    PROJECTOR = "projector"
    OTHER = "other"


class Part(Struct, frozen=True, order=True):
    """A part of a model that may be shared by itself.

    Attributes
    ----------
    component : what it is made of.
    layer : its layer; None outside the layers.
    expert : its number among the experts of its layer; None where it is none of them.
    tower : the stack of layers that it belongs to; empty for the text model.
    """

    component: Component
    layer: int | None = None
    expert: int | None = None
    tower: str = ""


class PartState(StrEnum):
    """What is known about a part of two models.

    "No trace" is said only where a copy would have been seen, renumbered or turned copies too;
    where they would not, the part is not comparable.
    """

    EQUAL = "equal"
    ROUNDED = "rounded"
    SHARED = "shared"
    NO_TRACE = "no-trace"
    NOT_COMPARABLE = "not-comparable"
    NOT_READ = "not-read"

    @property
    def same(self) -> bool:
        """Whether all of the part is in both models, if need be after rounding."""
        return self in (PartState.EQUAL, PartState.ROUNDED)

    @property
    def linked(self) -> bool:
        """Whether something of the part is in both models."""
        return self.same or self is PartState.SHARED


class PartFinding(Struct, frozen=True):
    """What is known about one part of two models, and from what.

    Attributes
    ----------
    part : the part of the first model.
    partner : the part of the second model that it was compared with; None where there is none.
    state : what is known.
    likeness : mean correlation of its weights with those of the partner; None if not known.
    log10_p : log10 of the p-value of this part alone, its tests paid for; None without a test.
    gains : correlation of the effective gains that feed it; None if not known.
    learnt : whether it is more alike than one initialisation makes it; None if that is not known.
    untrained : why what is equal of it may be random numbers that nobody trained; None where
        nothing says so.
    share : the share of its tensors that is linked, where that can be told.
    bits : of a rounded part, the bits of a number in the coarser model.
    reason : why it is not comparable or was not read.
    tests : the tests that speak of it.
    weights : how many numbers it has.
    read : the share of them that was read.
    needs : how many bytes would have to be read to decide it; None if not known.
    basis : those among them that every part of its tower needs, and that are read once for all.
    least : the share of the larger of both parts that is linked at least; None where it is `share`.
    partner_weights : how many numbers the partner has; 0 where it counts as much as the part.
    of_second : whether `part` is one of the second model, to which none of the first answers.
    """

    part: Part
    partner: Part | None
    state: PartState
    likeness: float | None = None
    log10_p: float | None = None
    gains: float | None = None
    learnt: bool | None = None
    untrained: VerdictReason | None = None
    share: float = 1.0
    bits: int | None = None
    reason: Message | None = None
    tests: tuple[str, ...] = ()
    weights: int = 0
    read: float = 0.0
    needs: int | None = None
    least: float | None = None
    partner_weights: int = 0
    basis: int = 0
    of_second: bool = False

    @property
    def sure(self) -> float:
        """The share that is linked at least, whichever of both models is meant."""
        return self.share if self.least is None else min(self.share, self.least)

    @property
    def counted(self) -> int:
        """How many numbers the larger of both parts has."""
        return max(self.weights, self.partner_weights)

    @property
    def fewest(self) -> int:
        """How many numbers the smaller of both parts has."""
        return min(self.weights, self.partner_weights or self.weights)


class BeyondState(StrEnum):
    """What two models, or a part of them, have in common beyond a base.

    Equal: both hold the same numbers, if need be after rounding, and the base has others. Near: one
    is the other but for a change that is small against both. Shared: both have one change, if need
    be at another scale, or many numbers of it. Subspace: changes of low rank lie in the same
    directions. Alike: as alike as changes that were made apart by training on one text. Apart:
    nothing of this was seen. Unchanged: one of them is what the base is.
    """

    EQUAL = "equal"
    NEAR = "near"
    SHARED = "shared"
    SUBSPACE = "subspace"
    ALIKE = "alike"
    APART = "apart"
    UNCHANGED = "unchanged"
    NOT_COMPARABLE = "not-comparable"
    NOT_READ = "not-read"

    @property
    def common(self) -> bool:
        """Whether more beyond the base is in both models than training on one text puts there."""
        return self in _COMMON


_COMMON = (BeyondState.EQUAL, BeyondState.NEAR, BeyondState.SHARED, BeyondState.SUBSPACE)


class Standing(StrEnum):
    """How a fingerprint stands to the model that it names.

    Forged: it names a commit, and holds other bytes than that has. Changed: the same where nothing
    pins the model, which may have been changed since. Gone: the model cannot be read.
    """

    RIGHT = "right"
    CHANGED = "changed"
    FORGED = "forged"
    GONE = "gone"
    BROKEN = "broken"


class DeclaredState(StrEnum):
    """What became, in an atlas, of an origin that a model declares."""

    LINKED = "linked"
    UNLINKED = "unlinked"
    NOT_COMPARED = "not-compared"
    NOT_IN_ATLAS = "not-in-atlas"


class Precedence(StrEnum):
    """Which of two linked models came first, as far as anything tells."""

    A_FIRST = "a-first"
    B_FIRST = "b-first"
    UNDECIDED = "undecided"

    @property
    def swapped(self) -> Precedence:
        """The same with the models exchanged."""
        return _SWAPPED.get(self, self)


_SWAPPED = {Precedence.A_FIRST: Precedence.B_FIRST, Precedence.B_FIRST: Precedence.A_FIRST}


class DirectionBasis(StrEnum):
    """What tells the direction of an edge of a family tree.

    Traces: two of different kind agree. Between: the numbers of one lie between those of its
    parents, as a merge's do. Rounded: one holds the numbers of the other rounded. Central: more of
    the family are nearest to one of the two. One parent: one of the two has another parent already.
    All but traces make a parent likely and no more.
    """

    TRACES = "traces"
    BETWEEN = "between"
    ROUNDED = "rounded"
    CENTRAL = "central"
    ONE_PARENT = "one-parent"

    @property
    def likely(self) -> bool:
        """Whether it makes a parent likely and no more."""
        return self is not DirectionBasis.TRACES


class ClaimedEdge(StrEnum):
    """How an edge of a family tree stands to the origins that its models declare."""

    AGREED = "agreed"
    SILENT = "silent"
    CONTRADICTED = "contradicted"


class Trace(StrEnum):
    """What may tell which of two models came first.

    Rounding: one holds the other's numbers rounded. Vocabulary: one has the other's tokens at their
    places and more behind them. Training: the log of one run goes on in the other's. Dates: of the
    first commits. Drift: how far training has carried the weights; it is shown and never counted.
    """

    ROUNDING = "rounding"
    VOCABULARY = "vocabulary"
    TRAINING = "training"
    DATES = "dates"
    DRIFT = "drift"

    @property
    def counted(self) -> bool:
        """Whether it counts: what was wrong too often is only shown."""
        return self is not Trace.DRIFT


class Reason(StrEnum):
    """Why a test has no result; each is the key of its sentence in the catalogues.

    With `Status.NEEDS` it names what the test needs, with `Status.UNDEFINED` what is degenerate,
    with `Status.GUARDED` why labels or signs of neither model can be called random, and with
    `Status.UNREAD` why reading ended before.
    """

    @staticmethod
    def _generate_next_value_(name: str, *_: object) -> str:
        return "reason." + name.lower().replace("_", "-")

    # What a test needs.
    MODELS_OF_ONE_WIDTH = auto()
    MODELS_OF_DIFFERENT_WIDTH = auto()
    NORM_GAINS = auto()
    NORM_VECTORS = auto()
    SHARED_TOKENS = auto()
    MATRIX_ROWS = auto()
    FEED_FORWARD_UNITS = auto()
    UNITS_OF_EQUAL_INDEX = auto()
    FEED_FORWARDS_OF_EQUAL_SHAPE = auto()
    FEED_FORWARDS_OF_DIFFERENT_WIDTH = auto()
    RESIDUAL_MAP = auto()
    RESIDUAL_MAP_UNTRUSTED = auto()
    ATTENTION_HEADS = auto()
    HEADS_OF_EQUAL_SHAPE = auto()
    COMPARABLE_HEADS = auto()
    EQUAL_ROTARY_PLANES = auto()
    BIASES = auto()
    VALUES = auto()
    ROUTERS = auto()
    MATCHED_UNITS = auto()
    WHOLE_FEED_FORWARDS = auto()
    # Why something was not read that could have been.
    STOPPED_EARLY = auto()
    # What is degenerate.
    CONSTANT_GAINS = auto()
    NO_VARYING_NORM = auto()
    NO_NEIGHBOURING_GAINS = auto()
    COPIED_CHANNELS = auto()
    CONSTANT_COLUMNS = auto()
    CONSTANT_MATRICES = auto()
    CONSTANT_UNITS = auto()
    NOTHING_TO_RELABEL = auto()
    RELABELLING_CHANGES_NOTHING = auto()
    # What self-tests of one model found.
    CHANNELS_SORTED = auto()
    CHANNELS_ALONG_INDEX = auto()
    CHANNELS_UNCORRELATED = auto()
    CHANNEL_SIGNS_UNFAIR = auto()
    CHANNEL_SIGNS_TOO_FEW = auto()
    GAINS_PERIODIC = auto()
    COLUMNS_LEAN = auto()
    BOTH_MASKED = auto()
    UNITS_SORTED = auto()
    UNIT_SIGNS_UNFAIR = auto()
    UNIT_SIGNS_UNFAIR_OVER_LAYERS = auto()
    UNIT_SIGNS_FOLLOW_A_RULE = auto()
    UNIT_ENDS_REPEATED = auto()
    PLANE_SIGNS_UNFAIR = auto()
    BIAS_SIGNS_UNFAIR = auto()
    VALUE_SIGNS_UNFAIR = auto()
    VALUES_ORTHOGONAL = auto()
    VALUES_SORTED = auto()
    # What a model's architecture does not grant.
    FIXED_POSITIONS = auto()
    LAYER_NORM = auto()
    NO_GATE = auto()
    NOT_ODD_IN_UP = auto()
    VALUES_MIXED = auto()
    HEAD_BIAS = auto()
    NO_ROTARY_EMBEDDING = auto()
    TWO_WIDTHS = auto()
    SHARED_ROTARY_KEY = auto()
    QK_LAYER_NORM = auto()
    QK_NORM = auto()
    GROUPED_UNITS = auto()
    ROUTED_IN_GROUPS = auto()
    NO_LATENT_ATTENTION = auto()
    ALL_POSITIONS_ROTATED = auto()
    NOT_KNOWN = auto()
    # Why nothing is known about a part.
    PART_INVARIANTS = auto()
    PART_MISSING = auto()
    PART_ONLY_THERE = auto()
    PART_UNANSWERED = auto()
    PART_NOT_READ = auto()
    PART_UNREAD_HERE = auto()
    PART_PACKED = auto()
    PART_TRAINED_ANEW = auto()
    PART_ONE_STREAM = auto()
    PART_WITHOUT_TEST = auto()
    PART_BLIND = auto()
    PART_NOT_FOUND = auto()
    PART_SILENT = auto()
    PART_FLAT = auto()
    PART_TOO_PLAIN = auto()
    PART_FEW_ROWS = auto()
    PART_TOGETHER = auto()
    PART_CHANNELS_RENAMED = auto()
    PART_EXPERTS_RENAMED = auto()
    PART_OTHER_ROLES = auto()
    PART_OTHER_WIDTH = auto()
    PART_HEADS_RENAMED = auto()
    PART_UNITS_RENAMED = auto()
    TOWER_MISSING = auto()
    TOWER_ONLY_THERE = auto()
    TOWER_UNLIKE = auto()
    TOWER_UNTESTED = auto()
    # What is no silence of a test of ours.
    SAME_FILES = auto()
    EXTENSION_FAILED = auto()
    EXTENSION_NAME_TAKEN = auto()
    STATED = auto()

    def message(self, **fields: object) -> Message:
        """The sentence, with its fields, to be said in any language."""
        return message(self.value, **fields)


LONE_TOWERS = (Reason.TOWER_MISSING, Reason.TOWER_ONLY_THERE, Reason.TOWER_UNLIKE)
"""Why a part is one of a tower that was compared with none."""
DRAFT = "mtp"
"""The tower of layers that draft further tokens, where they are counted on from the others."""


class Role(StrEnum):
    """What a tensor is, whatever its model calls it.

    Attention has q, k, v and o; a feed-forward gate, up and down, also of experts and of the
    expert that all tokens share. What is fused is named by its parts. `other` is for tensors
    with a meaning that comparisons do not speak of, and for those of unknown meaning.
    """

    EMBED = "embed"
    POS_EMBED = "pos_embed"
    LM_HEAD = "lm_head"
    NORM_IN = "norm_in"
    NORM_POST_ATTN = "norm_post_attn"
    NORM_PRE_FFN = "norm_pre_ffn"
    NORM_POST_FFN = "norm_post_ffn"
    NORM_FINAL = "norm_final"
    NORM_Q = "norm_q"
    NORM_K = "norm_k"
    NORM_OTHER = "norm_other"
    Q = "q"
    K = "k"
    V = "v"
    O = "o"  # noqa: E741
    QKV = "qkv"
    GATE = "gate"
    UP = "up"
    DOWN = "down"
    GATE_UP = "gate_up"
    EXPERT_GATE = "expert_gate"
    EXPERT_UP = "expert_up"
    EXPERT_DOWN = "expert_down"
    EXPERT_GATE_UP = "expert_gate_up"
    SHARED_GATE = "shared_gate"
    SHARED_UP = "shared_up"
    SHARED_DOWN = "shared_down"
    SHARED_GATE_UP = "shared_gate_up"
    ROUTER = "router"
    SSM = "ssm"
    BIAS = "bias"
    OTHER = "other"

    @property
    def of_experts(self) -> bool:
        """Whether it is a matrix of routed experts."""
        return self.startswith(EXPERT_PREFIX)

    @property
    def shared(self) -> bool:
        """Whether it is a matrix of the expert that all tokens share."""
        return self.startswith(SHARED_PREFIX)


_BIAS = ".bias"


def bias_of(role: str) -> str:
    """How the bias of a weight of that role is addressed, such as `q.bias`."""
    return role + _BIAS


def is_bias(role: str) -> bool:
    """Whether an address speaks of a bias."""
    return role.endswith(_BIAS)


def weight_of(role: str) -> str:
    """The role of the weight that a bias belongs to; any other role as it is."""
    return role.removesuffix(_BIAS)


EXPERT_PREFIX, SHARED_PREFIX = "expert_", "shared_"
FEED_FORWARDS = ("", EXPERT_PREFIX, SHARED_PREFIX)
"""What roles begin with: those of a plain feed-forward, of routed experts, and of the expert that
all tokens share."""
_IN_FEED_FORWARD = (Role.GATE, Role.UP, Role.DOWN, Role.GATE_UP)


def feed_forward_of(role: str) -> str:
    """What the role of an expert's matrix or bias begins with; empty for any other role."""
    weight = weight_of(role)
    found = (one for one in FEED_FORWARDS[1:] if weight.startswith(one))
    return next((one for one in found if weight.removeprefix(one) in _IN_FEED_FORWARD), "")


def plain_role(role: str) -> str:
    """The role that a matrix or bias of an expert has in a plain feed-forward, such as `up` for
    `expert_up` and `shared_up`; any other role as it is."""
    return role.removeprefix(feed_forward_of(role))


class ModelRef(Struct, frozen=True):
    """Which model a user meant, and the exact state of it that is being read.

    `given` is what was typed; `name` is its canonical spelling; `commit` pins the
    state and is empty where the place has no notion of one; `path` is the file or
    folder inside it that was pointed at, empty for the whole.
    """

    given: str
    kind: str
    name: str
    commit: str = ""
    path: str = ""


class Commit(Struct, frozen=True):
    """One entry of a repository's history, as its host tells it."""

    id: str
    date: str
    title: str


class History(Struct, frozen=True):
    """Commits of a repository, the newest first, and by path the one that last changed a file."""

    commits: tuple[Commit, ...] = ()
    changes: Mapping[str, Commit] = field(default_factory=dict)


class FileEntry(Struct, frozen=True):
    """One file of a model as its source lists it.

    `key` names the content for the cache: a sha256 where the source knows it, else
    whatever pins the bytes (commit and path, entity tag and length); None means that
    nothing pins them. `local` is where the file lies on this machine, if it does: such
    files are read in place and never cached. So are those that are `held` in memory by their
    source.
    """

    path: str
    size: int
    sha256: str | None = None
    key: str | None = None
    local: str | None = None
    held: bool = False


class ByteRange(Struct, frozen=True, order=True):
    """Bytes `start` to `stop`, the last one excluded."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.stop - self.start


class TensorSpec(msgspec.Struct, frozen=True, gc=False):
    """Where a tensor lies and how its numbers are written.

    `shape` is in row-major order whatever the format's own habit. `offset` counts from
    the start of `file`. `strides`, in elements, is set only where the stored order is
    not row-major (views in PyTorch archives); such tensors are read whole. A large model
    has tens of thousands of these, which is why this record is the quick kind.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    offset: int
    nbytes: int
    strides: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """Number of elements."""
        total = 1
        for size in self.shape:
            total *= size
        return total


class Header(Struct, frozen=True):
    """What a weight file says about itself: its tensors and its own metadata.

    `extent` is how many bytes of the file had to be known to say so.
    """

    format: str
    tensors: tuple[TensorSpec, ...]
    metadata: Mapping[str, object] = field(default_factory=dict)
    extent: int = 0


class Slice(Struct, frozen=True):
    """A part of one tensor, the unit that everything above asks for.

    The tensor is seen as a matrix: the last axis gives the columns, all others the
    rows. Nothing set means the whole tensor; `rows` takes whole rows, with `columns`
    only those of each row; `elements` takes single numbers by flat index and excludes
    the other two. The result of reading has one axis for elements, else two, except
    that the whole tensor keeps its shape.
    """

    tensor: TensorSpec
    rows: range | tuple[int, ...] | None = None
    columns: range | None = None
    elements: range | tuple[int, ...] | None = None


class Cost(Struct, frozen=True):
    """What reading costs, known before it is spent or counted while it is."""

    bytes: int = 0
    requests: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.bytes + other.bytes,
            self.requests + other.requests,
            self.seconds + other.seconds,
        )


class Step(StrEnum):
    """What a long run is doing."""

    BUILDING = "building"
    OPENING = "opening"
    PLANNING = "planning"
    READING = "reading"
    MEASURING = "measuring"
    COMPUTING = "computing"
    COMPARING = "comparing"
    NAMING = "naming"
    DRAWING = "drawing"


class Progress(Struct, frozen=True):
    """How far a run has come, for whoever shows progress.

    `kind` is "plan" when more became known to be needed, "bytes" when some arrived, and "step"
    when a step of a long run begins: then `step` names it, `what` says of what, and it is number
    `number` of `count`, where that is known.
    """

    kind: str
    done_bytes: int = 0
    total_bytes: int = 0
    done_requests: int = 0
    total_requests: int = 0
    step: Step | None = None
    what: str = ""
    number: int = 0
    count: int = 0


class Sensitivity(Struct, frozen=True):
    """How the statistic of a test scatters by chance, and how it grows with an effect.

    `deviation` is its standard deviation under the null; an effect of one adds `slope` to it and
    `widening`² to the null's variance. `nulls.power` makes the smallest effect of it that the
    test would have seen.
    """

    deviation: float
    slope: float
    widening: float


class Agreement(Struct, frozen=True):
    """How many units or heads of two models agree in what no relabelling can change.

    Strangers agree too, to an extent that was measured and follows from no theory: nothing here is
    a p-value.

    Attributes
    ----------
    count, of : how many of how many units agree, over all layers compared.
    share : the mean share of the layers.
    interval : the interval of the share of all units together, as if these were independent.
    limit : from which share on it speaks for common weights; None where it is only shown.
    speaks : whether the share, or that of a single layer, is so large.
    strangers : how many pairs of strangers, and of teachers and pupils, it is held against.
    largest : the largest share among those.
    width : their width, the nearest that is known.
    control : the largest share with a layer that does not correspond; None where not counted.
    nine_of_ten : log10 of a bound on the chance of so many, if strangers agreed in nine of ten.
    layers : numbers of the layers of both models, in the order of the pair's sides, whose
        feed-forwards agree beyond the limit; those of experts are not among them.
    """

    count: int
    of: int
    share: float
    interval: tuple[float, float]
    limit: float | None
    speaks: bool
    strangers: int
    largest: float
    width: int
    control: float | None
    nine_of_ten: float
    layers: tuple[tuple[int, int], ...] = ()


class Evidence(Struct, frozen=True):
    """What one test of dependence found.

    Attributes
    ----------
    test : name of the test.
    tier : what the evidence rests on.
    group : the relabellings or flips that the test compares with.
    status : whether there is a result.
    log10_p : log10 of the p-value; 0 without a result, and for a rule.
    statistic, effect : what the null bounds, and its size on a scale that does not grow with `n`,
        mostly that of a correlation.
    n : how many things could be relabelled.
    bound : what bounds the p-value.
    floor : the least log10 p that the group allows.
    null : a sample of the statistic under the null, for a picture.
    roles, layers : which tensors were compared.
    reason : why there is no result.
    learnt : whether the parameters start at a constant, so that what they share was learnt.
    by_layer : the likeness in each layer of the first model, where a test tells it.
    alignment_quality : how well the units of the two models could be matched.
    gain_spread : how far the gains of the two models have moved from a constant.
    details : further numbers by name, to be shown; nothing is decided by them.
    sensitivity : how small an effect the test would have seen, where it can tell.
    agreement : how much agrees that no relabelling can change, beside strangers.
    """

    test: str
    tier: Tier
    group: Group
    status: Status
    log10_p: float = 0.0
    statistic: float | None = None
    effect: float | None = None
    n: int = 0
    bound: str = ""
    floor: float = 0.0
    null: tuple[float, ...] = ()
    roles: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    reason: Message | None = None
    learnt: bool = False
    by_layer: tuple[tuple[int, float], ...] = ()
    alignment_quality: float | None = None
    gain_spread: float | None = None
    details: tuple[tuple[str, float], ...] = ()
    sensitivity: Sensitivity | None = None
    agreement: Agreement | None = None


class VerdictReason(StrEnum):
    """A step that led to a relation; `verdict.reason.` and its value is the key of its sentence.

    "Learnt" parameters are those that start at a constant, so that what two models share of them
    was learnt (norm gains, biases).
    """

    # What is equal.
    SAME_FILES = "same-files"
    SAME_NUMBERS = "same-numbers"
    SAME_AFTER_ROUNDING = "same-after-rounding"
    SAME_CONTENTS = "same-contents"
    SAME_CONTENTS_UNNAMED = "same-contents-unnamed"
    PARTS_EQUAL = "parts-equal"
    # Taken over, or started alike.
    LEARNT_TOGETHER = "learnt-together"
    LEARNT_APART = "learnt-apart"
    LEARNT_SILENT = "learnt-silent"
    MATRICES_ALIKE = "matrices-alike"
    AS_DRAWN = "as-drawn"
    FEW_EQUAL = "few-equal"
    NEVER_TRAINED = "never-trained"
    ARRANGED = "arranged"
    NORMS_ARRANGED = "norms-arranged"
    # Where the link ends.
    LAYERS_UNSHARED = "layers-unshared"
    LAYERS_NOT_READ = "layers-not-read"
    EXPERTS_NOT_READ = "experts-not-read"
    TOWERS_SHARED = "towers-shared"
    # Without a link.
    NOTHING_FOUND = "nothing-found"
    SHORT_LOOK = "short-look"
    INVARIANTS_AGREE = "invariants-agree"
    NOTHING_TESTABLE = "nothing-testable"


class Amount(Struct, frozen=True):
    """How much is shared.

    Attributes
    ----------
    linked : the share of the weights in the parts read that belong to linked parts.
    layers : the same for matrices of the layers alone; None where none was read.
    likeness : mean correlation of the linked parts, by their weights; None without any.
    read : the share of all weights that was read, of the model of which less was.
    """

    linked: float = 0.0
    layers: float | None = None
    likeness: float | None = None
    read: float = 0.0


class Verdict(Struct, frozen=True):
    """The relation of two models as the evidence has it, and how sure that is.

    Five statements, each with a basis of its own: the link (`log10_p`), what is shared (`parts`),
    of which kind that is (`relation`, `reasons`), how much (`amount`), and what the comparison
    could have seen (`power`, `missing`).

    Attributes
    ----------
    relation : how the models are related.
    log10_p : log10 of the p-value of the link, all tests and stages paid for.
    alpha : the chance of calling strangers related that was asked for.
    parts : what is known about each part.
    amount : how much is shared.
    power : by test, the smallest shared effect that would have been seen.
    reasons : the steps that led to the relation.
    missing : what tests had needed, where none could be run.
    """

    relation: Relation
    log10_p: float
    alpha: float
    parts: tuple[PartFinding, ...] = ()
    amount: Amount = Amount()
    power: tuple[tuple[str, float], ...] = ()
    reasons: tuple[VerdictReason, ...] = ()
    missing: tuple[Message, ...] = ()

    @property
    def linked(self) -> tuple[Component, ...]:
        """The components that have a linked part, in either model: experts may be made of one
        feed-forward, and the order of models makes no difference."""
        linked = [one for one in self.parts if one.state.linked]
        found = {part.component for one in linked for part in (one.part, one.partner) if part}
        return tuple(component for component in Component if component in found)
