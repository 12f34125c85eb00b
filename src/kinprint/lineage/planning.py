"""What a comparison would cost, known before a weight is read."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint.lineage.about.description import reading_backgrounds
from kinprint.lineage.identity import same_files
from kinprint.lineage.opening import open_all, read_headers, sampler_of
from kinprint.lineage.results import ComparisonPlan, Settings
from kinprint.model.opening import need_adapter
from kinprint.reader.fetch import Fetcher


def plan_comparison(given: Sequence[str], fetcher: Fetcher, settings: Settings) -> ComparisonPlan:
    """What comparing some models would cost; headers are read to know it, and no weight.

    Cards and commits are read as a comparison reads them, so that the plan leaves nothing out.
    """
    checkpoints = open_all(given, fetcher, settings)
    models = tuple(checkpoint.ref for checkpoint in checkpoints)
    with reading_backgrounds(checkpoints, settings.budget, hashes=False) as started:
        if len(given) == 2 and same_files(*checkpoints):
            found = ComparisonPlan(models, settings, (), 0)
        else:
            opened = read_headers(checkpoints, settings)
            need_adapter(opened, settings.base, pair=len(given) == 2)
            sampler = sampler_of(opened, settings)
            found = ComparisonPlan(
                models, settings, sampler.costs(), sampler.bytes, sampler.left_out
            )
        for background in started:
            background.result()
    return found
