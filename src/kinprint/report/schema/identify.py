"""What a model is built on, of all models of an atlas."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from kinprint.records import DeclaredState, Level, Precedence, Relation
from kinprint.report.schema.common import (
    Alpha,
    Claim,
    Count,
    Likeness,
    LogP,
    Made,
    ReadPart,
    Translations,
)
from kinprint.report.schema.comparison import PartRow

IDENTIFY_SCHEMA = "kinprint.identify/1"


class AtlasModel(Struct, frozen=True, kw_only=True):
    """A model as an atlas knows it; `entry` is the digest of its fingerprint."""

    given: str
    name: str
    title: str
    kind: str
    commit: str | None = None
    architecture: str = ""
    entry: str = ""


class RelativePart(AtlasModel, frozen=True, kw_only=True):
    """A model of the atlas that is linked with the one asked for.

    `log10_p` is paid for all models that were searched; it is null where no test has a p-value.
    `likeness` is the mean correlation of what is linked, times the share of parts that are.
    `direction` says which came first, where A is the model asked for. `weight` is what the model
    adds to the mixture of all parents that is nearest. `tied` says of a relative that nothing tells
    it from the first parent, in whose place it could stand. `declared` says that the model asked
    for names it as its origin.
    """

    level: Level = Level.STANDARD
    relation: Relation
    reasons: list[str] = []
    log10_p: LogP | None
    likeness: Likeness
    direction: Precedence
    weight: float | None = None
    tied: bool = False
    declared: bool = False
    parts: list[PartRow] = []


class UnlinkedPart(AtlasModel, frozen=True, kw_only=True):
    """A model that was compared without finding a link.

    `effect` is the correlation from which on weights at equal places would have been seen nine
    times in ten, on average over what was read of any one kind of part that has a test: the largest
    over these kinds, and `test` is its test. Both are null where none could be run.
    """

    level: Level = Level.STANDARD
    relation: Relation
    test: str | None = None
    effect: float | None = None


class DeclaredPart(Struct, frozen=True, kw_only=True):
    """An origin that the model declares, and what became of it in the atlas."""

    claim: Claim
    state: DeclaredState


class LeftOutPart(Struct, frozen=True, kw_only=True):
    """A fingerprint that could not be used, and why."""

    entry: str
    name: str = ""
    reason: str


class IdentifyDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=IDENTIFY_SCHEMA):
    """What a model is built on.

    `parents` are linked models that together explain it, the first one first; `descendants` linked
    models of which traces say that they came later; `relatives` all other linked ones, the nearest
    first. `searched` models were candidates, `compared` of them were compared, the most alike keys
    first; a test links any stranger among all of them with a chance of `family` at most. `same` are
    entries of the very same model, which are no candidates, nor are `other_seeds` models that were
    read with other seeds. Models of `not_deep` were to be compared once more at the deep level and
    could not be: what their fingerprints say stands.
    """

    model: AtlasModel
    atlas: str
    searched: Count
    compared: Count
    family: Alpha
    alpha: Alpha
    seed: Count = 0
    parents: list[RelativePart]
    descendants: list[RelativePart] = []
    relatives: list[RelativePart] = []
    unlinked: list[UnlinkedPart] = []
    declared: list[DeclaredPart] = []
    same: list[AtlasModel] = []
    other_seeds: Count = 0
    left_out: list[LeftOutPart] = []
    not_deep: list[LeftOutPart] = []
    labels: list[str] = []
    translations: Translations | UnsetType = UNSET
    made: Made
    read: ReadPart
