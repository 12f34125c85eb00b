"""Pictures of a diff, as chart records made from the document alone."""

from __future__ import annotations

from kinprint import text
from kinprint.report.changes import change_grid
from kinprint.report.schema import DiffDocument
from kinprint.studies.charts import Heatmap

_MOST = 1.5  # a relative change of 1.41 is that of unrelated weights


def charts_of(document: DiffDocument) -> list[Heatmap]:
    """How much each role changed, layer by layer; nothing where nothing was compared."""
    grid = change_grid(document.tensors)
    if grid is None:
        return []
    a, b = (one.title for one in document.models)
    known = [value for row in grid.values for value in row if value is not None]
    high = min(_MOST, max(known, default=0.0)) or 1.0
    return [
        Heatmap(
            "changes",
            text.words("diff.picture.title", a=a, b=b),
            grid.roles,
            tuple(map(str, grid.layers)),
            grid.values,
            text.words("diff.picture.measure"),
            low=0.0,
            high=high,
            column_label=text.words("diff.picture.layers"),
            note=text.words("diff.picture.note"),
        )
    ]
