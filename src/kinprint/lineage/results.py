"""What comparisons give: frozen records that hold all a document says, and compute nothing."""

from __future__ import annotations

from dataclasses import dataclass

from kinprint.errors import BadOption, KinprintError
from kinprint.lineage.about.configuration import Setting
from kinprint.lineage.about.description import CommonTokens, Description
from kinprint.lineage.charge import Charge
from kinprint.lineage.controls import Control
from kinprint.lineage.families import Branch
from kinprint.lineage.reading.levels import LEVELS
from kinprint.lineage.sharing.map import LayerMap, NormLikeness
from kinprint.records import ALPHA, Cost, Evidence, ModelRef, Verdict


@dataclass(frozen=True, slots=True)
class Settings:
    """How to compare: how much to read, how sure to be, and what adapters stand on."""

    level: str = "standard"
    alpha: float = ALPHA
    budget: int | None = None
    seed: int = 0
    base: str | None = None

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            cause = f"choose from {', '.join(LEVELS)}"
            raise BadOption(option="--level", value=self.level, cause=cause)
        if not 0 < self.alpha < 1:
            cause = "a level of error lies between 0 and 1"
            raise BadOption(option="--alpha", value=self.alpha, cause=cause)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models and what was found about them.

    `charge` says what each test had to pay for menu and stages. `stages` says how many sweeps
    were read of how many; `limit` is what all of them could have cost, in bytes. `notes` are
    remarks on how a model was read, `labels` what models say they are not. `strangers` are the
    control models as given. `subjects` tell what the two models say about themselves, `shared`
    where their weights are alike, `norms` the numbers of the disputes, `configuration` and
    `tokens` what their small files share: none of it decides.
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
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    controls: tuple[Control, ...] = ()
    strangers: tuple[str, ...] = ()
    subjects: tuple[Description, ...] = ()
    shared: LayerMap | None = None
    norms: tuple[NormLikeness, ...] = ()
    configuration: tuple[Setting, ...] = ()
    tokens: CommonTokens | None = None


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """One pair of a matrix, by the places of its models; `likeness` is for trees."""

    a: int
    b: int
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    likeness: float = 0.0


@dataclass(frozen=True, slots=True)
class Unread:
    """A model of a matrix that could not be opened or read, and why."""

    given: str
    error: KinprintError


@dataclass(frozen=True, slots=True)
class Matrix:
    """All pairs of those models that could be read, each read once.

    `unread` are the others; a command that has any ends with 2, as for every failure to read,
    after it has shown what was found. `order` puts models that are alike side by side, `tree`
    joins the most alike first.
    """

    models: tuple[ModelRef, ...]
    settings: Settings
    pairs: tuple[PairVerdict, ...]
    cost: Cost
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    subjects: tuple[Description, ...] = ()
    order: tuple[int, ...] = ()
    tree: tuple[Branch, ...] = ()
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a comparison would still cost, and at most; known before a weight is read."""

    models: tuple[ModelRef, ...]
    settings: Settings
    stages: tuple[Cost, ...]
    limit: int
    left_out: tuple[str, ...] = ()

    @property
    def cost(self) -> Cost:
        """All stages together."""
        return sum(self.stages, Cost())
