"""Which merge made a child, and how much of it the recipe gives."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from kinprint.records import MergeDoubt, MergeMethod, MergeOutcome, MergeStatus
from kinprint.report.schema.common import Count, Layer, Made, ReadPart, Share, Translations
from kinprint.report.schema.diff import DiffModel

UNMERGE_SCHEMA = "kinprint.unmerge/1"


class MergeWeight(Struct, frozen=True, kw_only=True):
    """What a source, or several that cannot be told apart, adds, with its 95 % interval.

    `sources` are numbers in the list of sources.
    """

    sources: tuple[Count, ...]
    value: float
    low: float
    high: float


class MergeSettings(Struct, frozen=True, kw_only=True):
    """What a recipe says: by parent, or how far from the first to the second."""

    weights: tuple[float, ...] = ()
    densities: tuple[float, ...] = ()
    t: float | None = None


class RecipePart(Struct, frozen=True, kw_only=True):
    """The recipe; `settings` is null where tensors differ, and then each has its own.

    `parents` and `base` are numbers in the list of sources, `scale` is what recipes call lambda,
    `yaml` is the recipe as a file for mergekit.
    """

    method: MergeMethod
    parents: tuple[Count, ...] = ()
    base: Count | None = None
    settings: MergeSettings | None = None
    dtype: str | None = None
    normalize: bool = False
    scale: float = 1.0
    rescale: bool = False
    yaml: str


class MergedTensor(Struct, frozen=True, kw_only=True):
    """One stored tensor of the child.

    `equal` counts the numbers that the recipe gives bit by bit; `source` and `source_layer` are
    where a tensor was taken from as it is.
    """

    name: str
    role: str
    tower: str = ""
    layer: Layer | None = None
    numbers: Count
    status: MergeStatus
    reason: str = ""
    weights: tuple[MergeWeight, ...] = ()
    residual: Share | None = None
    equal: Count | None = None
    settings: MergeSettings | None = None
    source: Count | None = None
    source_layer: Layer | None = None
    read: Count = 0


class MergeGroup(Struct, frozen=True, kw_only=True):
    """The mixture nearest to all tensors of a role, or of a layer."""

    role: str | None = None
    layer: Layer | None = None
    weights: tuple[MergeWeight, ...]
    residual: Share | None = None


class UnmergeDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=UNMERGE_SCHEMA):
    """A child, the models it may be merged from, and which merge made it.

    `methods` fit and cannot be told apart by the numbers, the recipe's first; `equal` of
    `compared` numbers are what the recipe gives, bit by bit. The child equals `copied`, after
    rounding if `rounded`; where only a part of it could be compared and equals a source, `doubt`
    says so, and where `equal` counts numbers of which each is that of some source. Some sources may
    be `dependent` on others, so that several recipes give the same; models `aside` were given and
    lack much of what the child and the sources have.
    """

    child: DiffModel
    sources: list[DiffModel]
    base: Count | None = None
    base_given: bool = False
    outcome: MergeOutcome
    doubt: MergeDoubt | None = None
    methods: tuple[MergeMethod, ...] = ()
    recipe: RecipePart | None = None
    copied: Count | None = None
    weights: tuple[MergeWeight, ...] = ()
    residual: Share | None = None
    equal: Count = 0
    compared: Count = 0
    tensors: list[MergedTensor]
    roles: list[MergeGroup] = []
    layers: list[MergeGroup] = []
    sampled: bool = False
    rounded: bool = False
    dependent: bool = False
    aside: list[DiffModel] = []
    labels: list[str] = []
    translations: Translations | UnsetType = UNSET
    made: Made
    read: ReadPart
