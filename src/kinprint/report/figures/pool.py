"""Many pictures at once: drawing is arithmetic, so each core draws its share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kinprint.algebra import cores
from kinprint.report.files import in_language, write_file
from kinprint.studies.charts import Chart
from kinprint.text import languages
from kinprint.workers import workers

_FEW = 8  # pictures that are drawn sooner than a second process starts


def draw_all(charts: Sequence[tuple[Path, Chart, Mapping[str, str]]]) -> Iterator[list[Path]]:
    """Draw each chart to its PNG file, other languages beside it; the files of one after another.

    A chart comes with the warning, by language, that stands above its title.
    """
    count = min(cores(), 4)
    if len(charts) <= _FEW or count < 2:
        yield from (draw_one(*one) for one in charts)
        return
    with workers(count) as pool:
        yield from pool.map(draw_one, *zip(*charts, strict=True), chunksize=2)


def draw_one(file: Path, chart: Chart, warnings: Mapping[str, str]) -> list[Path]:
    """One chart of a result in every language, with what its models say they are not."""
    from kinprint.report.figures.drawing import pictures

    written: list[Path] = []
    for language in languages():
        (drawn,) = pictures(chart, ("png",), language, warnings[language])
        written.append(write_file(file.with_stem(in_language(file.stem, language)), drawn))
    return written
