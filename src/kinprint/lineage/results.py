"""What comparisons give: frozen records that hold all a document says, and compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from kinprint import text
from kinprint.errors import BadOption, KinprintError
from kinprint.lineage.about.configuration import ConfigurationField
from kinprint.lineage.about.description import CommonTokens, Description
from kinprint.lineage.charge import Charge
from kinprint.lineage.reading.sample import Sample, SampleRecord
from kinprint.lineage.towers import TowerComparison
from kinprint.model.model import Model
from kinprint.records import ALPHA, Cost, Evidence, Level, ModelRef, Verdict
from kinprint.text import Message

if TYPE_CHECKING:  # what few comparisons have
    from kinprint.lineage.controls import Control
    from kinprint.lineage.families import Branch
    from kinprint.lineage.sharing.map import LayerMap, NormLikeness


class Settings(Struct, frozen=True):
    """How to compare.

    Attributes
    ----------
    level
        How much to read of each model; also taken by its name.
    alpha
        The chance of calling strangers related.
    budget
        The most bytes that reading may cost, all models together; None for the level's own.
    seed
        Chooses which rows, layers and tokens are read where not all are; also draws the samples of
        the null that are kept for pictures.
    base
        The model that an adapter was trained on, where it does not say.

    Raises
    ------
    BadOption
        If there is no such level, or alpha is not between 0 and 1.
    """

    level: Level = Level.STANDARD
    alpha: float = ALPHA
    budget: int | None = None
    seed: int = 0
    base: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            level: Level | str = Level.STANDARD,
            alpha: float = ALPHA,
            budget: int | None = None,
            seed: int = 0,
            base: str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.level not in tuple(Level):
            cause = text.message("cause.option.choice", choices=", ".join(Level))
            raise BadOption(option="level", value=self.level, cause=cause)
        if not 0 < self.alpha < 1:
            cause = text.message("cause.option.between", least=0, most=1)
            raise BadOption(option="alpha", value=self.alpha, cause=cause)
        force_setattr(self, "level", Level(self.level))


class Material(Struct, frozen=True, eq=False):
    """What a comparison looked at: both models, and what was read of their main towers."""

    models: tuple[Model, Model]
    samples: tuple[Sample, Sample]


class Comparison(Struct, frozen=True):
    """Two models and what was found about them.

    Attributes
    ----------
    a, b
        The two models, and which state of each was read.
    settings
        What was asked for.
    verdict
        The relation that the evidence supports, and how sure that is.
    evidence
        What each test gave, in the order of the menu; looks that are no test come last.
    cost
        What reading took.
    charge
        What each test had to pay for the menu and the stage of reading that was the last.
    stages
        How many stages were read, of how many.
    limit
        What all stages could have cost, in bytes.
    left_out
        What the budget did not allow to read.
    notes
        Remarks on how a model was read.
    labels
        What models say they are not.
    controls
        Both models against models known to be unrelated.
    strangers
        Those models, as given.
    towers
        Towers beside the main ones that could match, each pair for itself.
    read
        Of each model and tower, the files, byte ranges and digests of what was read.
    subjects
        What the two models say about themselves. This and what follows decides nothing.
    shared
        Where their weights are alike; None where no weight was read.
    norms
        Their norm vectors, compared as published disputes compared them.
    configuration
        Fields of both configurations side by side.
    tokens
        How many tokens both vocabularies have; None unless both were read.
    material
        What was looked at, for whoever asks more of it; None where no weight was read.
    """

    a: ModelRef
    b: ModelRef
    settings: Settings
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    cost: Cost
    charge: Charge
    stages: tuple[int, int] = (0, 0)
    limit: int = 0
    left_out: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = ()
    labels: tuple[Message, ...] = ()
    controls: tuple[Control, ...] = ()
    strangers: tuple[str, ...] = ()
    towers: tuple[TowerComparison, ...] = ()
    read: tuple[tuple[SampleRecord, ...], ...] = ()
    subjects: tuple[Description, ...] = ()
    shared: LayerMap | None = None
    norms: tuple[NormLikeness, ...] = ()
    configuration: tuple[ConfigurationField, ...] = ()
    tokens: CommonTokens | None = None
    material: Material | None = None


class PairVerdict(Struct, frozen=True):
    """One pair of a matrix.

    Attributes
    ----------
    a, b
        Places of the two models among those of the matrix.
    verdict
        Their relation.
    evidence
        What each test gave.
    likeness
        The mean correlation over all that was read, unlinked parts as 0; for trees.
    towers
        Towers beside the main ones that could match, each pair for itself.
    """

    a: int
    b: int
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    likeness: float = 0.0
    towers: tuple[TowerComparison, ...] = ()


class FailedPair(Struct, frozen=True):
    """A pair of a matrix that could not be compared, by the places of its models, and why."""

    a: int
    b: int
    error: KinprintError


class UnreadModel(Struct, frozen=True):
    """A model of a matrix that could not be opened or read, as given, and why."""

    given: str
    error: KinprintError


class Matrix(Struct, frozen=True):
    """All pairs of those models that could be read, each read once.

    Attributes
    ----------
    models
        The models that were read.
    settings
        What was asked for.
    pairs
        Their pairs, in the order of `models`, without those of `failed`.
    cost
        What reading took.
    notes
        Remarks on how a model was read.
    labels
        What models say they are not.
    subjects
        What each model says about itself.
    order
        Places of the models such that those that are alike stand side by side.
    tree
        Which models and branches join, the most alike first.
    unread
        Models that were set aside. A command that has any, or any failed pair, ends with 2 after
        it has shown what was found, as for every failure to read.
    failed
        Pairs that were set aside.
    read
        Of each model and tower, the files, byte ranges and digests of what was read.
    false_links
        How many links chance makes among so many pairs of strangers on average, at most; None
        where nobody worked it out.
    """

    models: tuple[ModelRef, ...]
    settings: Settings
    pairs: tuple[PairVerdict, ...]
    cost: Cost
    notes: tuple[Message, ...] = ()
    labels: tuple[Message, ...] = ()
    subjects: tuple[Description, ...] = ()
    order: tuple[int, ...] = ()
    tree: tuple[Branch, ...] = ()
    unread: tuple[UnreadModel, ...] = ()
    failed: tuple[FailedPair, ...] = ()
    read: tuple[tuple[SampleRecord, ...], ...] = ()
    false_links: float | None = None


class ComparisonPlan(Struct, frozen=True):
    """What a comparison would still cost; known before a weight is read.

    Attributes
    ----------
    models
        The models, and which state of each would be read.
    settings
        What was asked for.
    stages
        What each stage of reading would cost.
    limit
        The most bytes that all of it may cost, headers that are known by now included.
    left_out
        What the budget does not allow to read.
    """

    models: tuple[ModelRef, ...]
    settings: Settings
    stages: tuple[Cost, ...]
    limit: int
    left_out: tuple[Message, ...] = ()

    @property
    def cost(self) -> Cost:
        """All stages together."""
        return sum(self.stages, Cost())
