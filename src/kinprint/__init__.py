"""Was this model derived from that one? Answers from a few megabytes of weights, read in place.

Everything public is here, and a test holds the list: verbs, the results that they give, errors and
enums. What is not here may change without notice. The command line calls the same verbs.

    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.compare(zoo / "base-a", zoo / "a-cpt")
    >>> print(found.relation)
    derived

Names are loaded when they are first used, so that `kinprint --help` loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kinprint.version import __version__

if TYPE_CHECKING:
    from kinprint.atlas.building import Added, Verified
    from kinprint.errors import (
        AccessRefused,
        AtlasBroken,
        AtlasError,
        AtlasFull,
        BadAdapter,
        BadArchive,
        BadConfig,
        BadGguf,
        BadHeader,
        BadIndex,
        BadOption,
        BadPickle,
        BadQuantisation,
        BadReference,
        BadTokenizer,
        BodyBroken,
        BudgetExceeded,
        CacheBroken,
        CacheError,
        ClusterError,
        ClusterLost,
        ClusterUnfit,
        ClusterUnreachable,
        DiskFull,
        DtypeUnknown,
        EntryBroken,
        FileChanged,
        FileMissing,
        FormatError,
        InternalError,
        KinprintError,
        LengthWrong,
        MissingExtra,
        MissingLibrary,
        NetworkError,
        NotAHub,
        NotRecorded,
        NoWeights,
        OfflineMiss,
        PartsMissing,
        RangeIgnored,
        RangeRefused,
        RateLimited,
        RepositoryGated,
        RepositoryMissing,
        RepositoryPrivate,
        RevisionMissing,
        ServerFailed,
        SliceOutside,
        SourceError,
        SystemFailed,
        TensorMissing,
        TensorUnknown,
        TooSlow,
        Unreachable,
        UsageError,
        WorkerDied,
    )
    from kinprint.measure.measures import (
        Measure,
    )
    from kinprint.model.geometry import (
        Geometry,
    )
    from kinprint.records import (
        ClaimedEdge,
        Component,
        Cost,
        DeclaredState,
        DirectionBasis,
        Group,
        Level,
        MergeDoubt,
        MergeMethod,
        MergeOutcome,
        MergeStatus,
        ModelRef,
        Operation,
        Part,
        PartFinding,
        PartState,
        Progress,
        Relation,
        Role,
        Standing,
        Status,
        TensorStatus,
        Tier,
    )
    from kinprint.report.results.comparison import (
        Comparison,
        Matrix,
    )
    from kinprint.report.results.diff import (
        Diff,
    )
    from kinprint.report.results.identify import Identification
    from kinprint.report.results.inspection import (
        Inspection,
    )
    from kinprint.report.results.plan import (
        Plan,
    )
    from kinprint.report.results.reproduction import (
        Reproduction,
    )
    from kinprint.report.results.result import (
        Failure,
        Result,
    )
    from kinprint.report.results.study import (
        StudyResult,
    )
    from kinprint.report.results.tree import FamilyTree
    from kinprint.report.results.unmerge import (
        Unmerged,
    )
    from kinprint.studies.results import (
        Table,
    )
    from kinprint.studies.study import (
        Study,
    )
    from kinprint.verbs.atlas import Atlas, AtlasContents, AtlasEntry, identify
    from kinprint.verbs.caching import (
        CacheContents,
        CachedModel,
        cached,
        clear_cache,
    )
    from kinprint.verbs.comparing import (
        compare,
        matrix,
        plan_comparison,
    )
    from kinprint.verbs.differing import (
        diff,
        plan_diff,
    )
    from kinprint.verbs.extending import (
        InstalledExtension,
        installed_extensions,
    )
    from kinprint.verbs.model import (
        Model,
        Tensor,
    )
    from kinprint.verbs.opening import (
        inspect,
        open,
        plan,
        plan_inspection,
    )
    from kinprint.verbs.reader import (
        Reader,
    )
    from kinprint.verbs.reports import (
        report,
    )
    from kinprint.verbs.reproducing import (
        reproduce,
    )
    from kinprint.verbs.studying import (
        find_study,
        list_measures,
        list_studies,
        plan_study,
        study,
    )
    from kinprint.verbs.unmerging import (
        plan_unmerge,
        unmerge,
    )

__all__ = [
    "AccessRefused",
    "Added",
    "Atlas",
    "AtlasBroken",
    "AtlasContents",
    "AtlasEntry",
    "AtlasError",
    "AtlasFull",
    "BadAdapter",
    "BadArchive",
    "BadConfig",
    "BadGguf",
    "BadHeader",
    "BadIndex",
    "BadOption",
    "BadPickle",
    "BadQuantisation",
    "BadReference",
    "BadTokenizer",
    "BodyBroken",
    "BudgetExceeded",
    "CacheBroken",
    "CacheContents",
    "CacheError",
    "CachedModel",
    "ClaimedEdge",
    "ClusterError",
    "ClusterLost",
    "ClusterUnfit",
    "ClusterUnreachable",
    "Comparison",
    "Component",
    "Cost",
    "DeclaredState",
    "Diff",
    "DirectionBasis",
    "DiskFull",
    "DtypeUnknown",
    "EntryBroken",
    "Failure",
    "FamilyTree",
    "FileChanged",
    "FileMissing",
    "FormatError",
    "Geometry",
    "Group",
    "Identification",
    "Inspection",
    "InstalledExtension",
    "InternalError",
    "KinprintError",
    "LengthWrong",
    "Level",
    "Matrix",
    "Measure",
    "MergeDoubt",
    "MergeMethod",
    "MergeOutcome",
    "MergeStatus",
    "MissingExtra",
    "MissingLibrary",
    "Model",
    "ModelRef",
    "NetworkError",
    "NoWeights",
    "NotAHub",
    "NotRecorded",
    "OfflineMiss",
    "Operation",
    "Part",
    "PartFinding",
    "PartState",
    "PartsMissing",
    "Plan",
    "Progress",
    "RangeIgnored",
    "RangeRefused",
    "RateLimited",
    "Reader",
    "Relation",
    "RepositoryGated",
    "RepositoryMissing",
    "RepositoryPrivate",
    "Reproduction",
    "Result",
    "RevisionMissing",
    "Role",
    "ServerFailed",
    "SliceOutside",
    "SourceError",
    "Standing",
    "Status",
    "Study",
    "StudyResult",
    "SystemFailed",
    "Table",
    "Tensor",
    "TensorMissing",
    "TensorStatus",
    "TensorUnknown",
    "Tier",
    "TooSlow",
    "Unmerged",
    "Unreachable",
    "UsageError",
    "Verified",
    "WorkerDied",
    "__version__",
    "cached",
    "clear_cache",
    "compare",
    "diff",
    "find_study",
    "identify",
    "inspect",
    "installed_extensions",
    "list_measures",
    "list_studies",
    "matrix",
    "open",
    "plan",
    "plan_comparison",
    "plan_diff",
    "plan_inspection",
    "plan_study",
    "plan_unmerge",
    "report",
    "reproduce",
    "study",
    "unmerge",
]

# Where each name is loaded from when it is first used.
_HOMES = {
    "kinprint.errors": (
        "AccessRefused",
        "AtlasBroken",
        "AtlasError",
        "AtlasFull",
        "BadAdapter",
        "BadArchive",
        "BadConfig",
        "BadGguf",
        "BadHeader",
        "BadIndex",
        "BadOption",
        "BadPickle",
        "BadQuantisation",
        "BadReference",
        "BadTokenizer",
        "BodyBroken",
        "BudgetExceeded",
        "CacheBroken",
        "CacheError",
        "ClusterError",
        "ClusterLost",
        "ClusterUnfit",
        "ClusterUnreachable",
        "DiskFull",
        "DtypeUnknown",
        "EntryBroken",
        "FileChanged",
        "FileMissing",
        "FormatError",
        "InternalError",
        "KinprintError",
        "LengthWrong",
        "MissingExtra",
        "MissingLibrary",
        "NetworkError",
        "NotAHub",
        "NotRecorded",
        "NoWeights",
        "OfflineMiss",
        "PartsMissing",
        "RangeIgnored",
        "RangeRefused",
        "RateLimited",
        "RepositoryGated",
        "RepositoryMissing",
        "RepositoryPrivate",
        "RevisionMissing",
        "ServerFailed",
        "SliceOutside",
        "SourceError",
        "SystemFailed",
        "TensorMissing",
        "TensorUnknown",
        "TooSlow",
        "Unreachable",
        "UsageError",
        "WorkerDied",
    ),
    "kinprint.measure.measures": ("Measure",),
    "kinprint.model.geometry": ("Geometry",),
    "kinprint.records": (
        "Component",
        "Cost",
        "Group",
        "Level",
        "MergeDoubt",
        "MergeMethod",
        "MergeOutcome",
        "MergeStatus",
        "ModelRef",
        "Operation",
        "Part",
        "PartFinding",
        "PartState",
        "Progress",
        "Relation",
        "Role",
        "Status",
        "TensorStatus",
        "Tier",
        "ClaimedEdge",
        "DeclaredState",
        "DirectionBasis",
        "Standing",
    ),
    "kinprint.report.results.comparison": (
        "Comparison",
        "Matrix",
    ),
    "kinprint.report.results.diff": ("Diff",),
    "kinprint.report.results.identify": ("Identification",),
    "kinprint.report.results.inspection": ("Inspection",),
    "kinprint.report.results.plan": ("Plan",),
    "kinprint.report.results.reproduction": ("Reproduction",),
    "kinprint.report.results.result": (
        "Failure",
        "Result",
    ),
    "kinprint.report.results.study": ("StudyResult",),
    "kinprint.report.results.tree": ("FamilyTree",),
    "kinprint.report.results.unmerge": ("Unmerged",),
    "kinprint.studies.results": ("Table",),
    "kinprint.studies.study": ("Study",),
    "kinprint.atlas.building": (
        "Added",
        "Verified",
    ),
    "kinprint.verbs.atlas": (
        "Atlas",
        "AtlasContents",
        "AtlasEntry",
        "identify",
    ),
    "kinprint.verbs.caching": (
        "CacheContents",
        "CachedModel",
        "cached",
        "clear_cache",
    ),
    "kinprint.verbs.comparing": (
        "compare",
        "matrix",
        "plan_comparison",
    ),
    "kinprint.verbs.differing": (
        "diff",
        "plan_diff",
    ),
    "kinprint.verbs.extending": (
        "InstalledExtension",
        "installed_extensions",
    ),
    "kinprint.verbs.model": (
        "Model",
        "Tensor",
    ),
    "kinprint.verbs.opening": (
        "inspect",
        "open",
        "plan",
        "plan_inspection",
    ),
    "kinprint.verbs.reader": ("Reader",),
    "kinprint.verbs.reports": ("report",),
    "kinprint.verbs.reproducing": ("reproduce",),
    "kinprint.verbs.studying": (
        "find_study",
        "list_measures",
        "list_studies",
        "plan_study",
        "study",
    ),
    "kinprint.verbs.unmerging": (
        "plan_unmerge",
        "unmerge",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

# `diff` and `report` are verbs and rooms. Python binds a package to its name in its parent when it
# is first imported: that is done now, and the name is free again for the verb. The room is found as
# before by `from kinprint.report.x import y`.
for _room in ("diff", "report"):
    import_module(f"kinprint.{_room}")
    globals().pop(_room)

if not TYPE_CHECKING:  # to a type checker, names that are not above are mistakes

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'kinprint' has no attribute {name!r}")
        found = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
