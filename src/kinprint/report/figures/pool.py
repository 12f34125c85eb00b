"""Many pictures at once: drawing is arithmetic, so each core draws its share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from kinprint.report.files import in_language, write_file
from kinprint.studies.charts import Chart
from kinprint.text import languages
from kinprint.workers import workers

_FEW = 8  # pictures that are drawn sooner than a second process starts


def draw_all(charts: Sequence[tuple[Path, Chart, Mapping[str, str]]]) -> list[Path]:
    """Draw each chart to its PNG file, with SVG and other languages beside it; the files written.

    A chart comes with the warning, by language, that stands above its title.
    """
    count = min(os.cpu_count() or 1, 4)
    if len(charts) <= _FEW or count < 2:
        return [path for one in charts for path in draw_one(*one)]
    with workers(count) as pool:
        done = pool.map(draw_one, *zip(*charts, strict=True), chunksize=4)
        return [path for paths in done for path in paths]


def draw_one(file: Path, chart: Chart, warnings: Mapping[str, str]) -> list[Path]:
    """One chart of a result, with what its models say they are not.

    SVG is drawn in English alone: a second one of each would be a quarter of the time.
    """
    from kinprint.report.figures.drawing import FORMATS, pictures

    written: list[Path] = []
    for language in languages():
        stem = in_language(file.stem, language)
        forms = FORMATS if stem == file.stem else FORMATS[:1]
        drawings = pictures(chart, forms, language, warnings[language])
        for form, drawn in zip(forms, drawings, strict=True):
            written.append(write_file(file.with_name(f"{stem}.{form}"), drawn))
    return written
