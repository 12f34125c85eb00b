"""The families of an atlas."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType, field

from kinprint.records import ClaimedEdge, DirectionBasis, PartState, Relation
from kinprint.report.schema.common import Alpha, Count, Likeness, LogP, Made, ReadPart, Translations
from kinprint.report.schema.direction import TraceRow
from kinprint.report.schema.identify import AtlasModel, DeclaredPart, LeftOutPart

TREE_SCHEMA = "kinprint.tree/1"


class TreeModel(AtlasModel, frozen=True, kw_only=True):
    """A model of the atlas; `copies` are other entries with the very same files."""

    copies: list[AtlasModel] = field(default_factory=list)
    declared: list[DeclaredPart] = field(default_factory=list)


class TreeLink(Struct, frozen=True, kw_only=True):
    """Two linked models, by their places in the list of models.

    `log10_p` is paid for all pairs of the atlas; it is null where no test has a p-value. `likeness`
    is the mean correlation of what is linked, times the share of parts that are.
    """

    a: Count
    b: Count
    relation: Relation
    log10_p: LogP | None
    likeness: Likeness


class TreeEdge(TreeLink, frozen=True, kw_only=True):
    """Two linked models of which one takes the other for its parent.

    A is the plausible parent where `basis` says what tells so; where it is null, nothing does, and
    the order says nothing. All but "traces" make A likely.
    """

    reasons: list[str] = []
    basis: DirectionBasis | None = None
    votes: tuple[Count, Count] = (0, 0)
    traces: list[TraceRow] = []
    weight: float | None = None
    declared: ClaimedEdge = ClaimedEdge.SILENT
    parts: dict[PartState, Count] = {}


class TreeFailure(Struct, frozen=True, kw_only=True):
    """Two models that could not be compared, and why."""

    a: Count
    b: Count
    reason: str


class TreeDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=TREE_SCHEMA):
    """The families of an atlas.

    `families` are places of models that are linked, directly or through others, the largest family
    first. `edges` say who takes whom for its parent; `links` are linked pairs without an edge. Of
    `pairs` pairs, all of which are paid for, `compared` were compared, those with the most alike
    keys; a test links any strangers among all of them with a chance of `family` at most. `unlinked`
    of those compared have no link: in all of them but `silent`, of which that is not known, weights
    at equal places would have been seen from a correlation of `effect` on, on average over what was
    read of any one kind of part that has a test. `other_seeds` models were read with other seeds
    and take no part.
    """

    atlas: str
    models: list[TreeModel]
    families: list[list[Count]]
    edges: list[TreeEdge]
    links: list[TreeLink] = []
    pairs: Count
    compared: Count
    unlinked: Count = 0
    silent: Count = 0
    effect: float | None = None
    family: Alpha
    alpha: Alpha
    seed: Count = 0
    other_seeds: Count = 0
    failed: list[TreeFailure] = []
    left_out: list[LeftOutPart] = []
    labels: list[str] = []
    translations: Translations | UnsetType = UNSET
    made: Made
    read: ReadPart
