"""Documents: every result as one record that is its JSON, field by field.

Pages, tables, pictures and lines of a terminal are views of these records and compute nothing.
`schema/` in the repository holds the same as JSON Schema, made from them. Texts that depend on a
language stand in the catalogues or travel with the document. Numbers that are none (an infinite
bound, an empty mean) are null. All but `read` is the same from run to run.

The number after the slash of a schema's name is its version: within a version fields may be
added, never removed or given another meaning.
"""

from kinprint.report.schema.common import (
    Asked,
    Claim,
    EvidenceShort,
    FileDigest,
    Made,
    ReadPart,
    Subject,
    Tokenizer,
)
from kinprint.report.schema.comparison import (
    COMPARE_SCHEMA,
    ComparisonDocument,
    ControlPart,
    EvidencePart,
    LayerPair,
    MapCell,
    PlanPart,
    SeedMetric,
    SettingRow,
    SharedMap,
    SharedTokens,
    VerdictPart,
)
from kinprint.report.schema.encoding import (
    Document,
    Plan,
    decode,
    encode,
    encode_line,
    plain,
    settled,
)
from kinprint.report.schema.inspection import (
    INSPECT_SCHEMA,
    AdapterPart,
    FilePart,
    GeometryPart,
    InspectionDocument,
    QuantisationPart,
    SplitsPart,
    TensorGroupPart,
    TensorPart,
)
from kinprint.report.schema.matrix import (
    MATRIX_SCHEMA,
    FailedPair,
    MatrixDocument,
    Merge,
    PairPart,
    Unread,
)
from kinprint.report.schema.plan import (
    PLAN_SCHEMA,
    READING_PLAN_SCHEMA,
    STUDY_PLAN_SCHEMA,
    PlanDocument,
    ReadingPlanDocument,
    StageCost,
    StudyPlanDocument,
)
from kinprint.report.schema.reproduction import (
    REPRODUCTION_SCHEMA,
    NumberPart,
    ReproductionDocument,
)
from kinprint.report.schema.study import (
    STUDIES_SCHEMA,
    STUDY_SCHEMA,
    ModelCount,
    SourcePart,
    StudiesDocument,
    StudyAsked,
    StudyDocument,
    StudyEntry,
    StudyPart,
)

__all__ = [
    "COMPARE_SCHEMA",
    "INSPECT_SCHEMA",
    "MATRIX_SCHEMA",
    "PLAN_SCHEMA",
    "READING_PLAN_SCHEMA",
    "REPRODUCTION_SCHEMA",
    "STUDIES_SCHEMA",
    "STUDY_PLAN_SCHEMA",
    "STUDY_SCHEMA",
    "AdapterPart",
    "Asked",
    "Claim",
    "ComparisonDocument",
    "ControlPart",
    "Document",
    "EvidencePart",
    "EvidenceShort",
    "FailedPair",
    "FileDigest",
    "FilePart",
    "GeometryPart",
    "InspectionDocument",
    "LayerPair",
    "Made",
    "MapCell",
    "MatrixDocument",
    "Merge",
    "ModelCount",
    "NumberPart",
    "PairPart",
    "Plan",
    "PlanDocument",
    "PlanPart",
    "QuantisationPart",
    "ReadPart",
    "ReadingPlanDocument",
    "ReproductionDocument",
    "SeedMetric",
    "SettingRow",
    "SharedMap",
    "SharedTokens",
    "SourcePart",
    "SplitsPart",
    "StageCost",
    "StudiesDocument",
    "StudyAsked",
    "StudyDocument",
    "StudyEntry",
    "StudyPart",
    "StudyPlanDocument",
    "Subject",
    "TensorGroupPart",
    "TensorPart",
    "Tokenizer",
    "Unread",
    "VerdictPart",
    "decode",
    "encode",
    "encode_line",
    "plain",
    "settled",
]
