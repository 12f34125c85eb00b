"""Was this model derived from that one? Answers from a few megabytes of weights, read in place.

The verbs that compose the rooms; the command line calls the same ones.

    >>> import kinprint
    >>> model = kinprint.open("org/name")
    >>> model.tensors()["model.norm.weight"].shape
    >>> found = kinprint.compare("org/child", "org/parent")
    >>> found.verdict.relation
    >>> found.save("report.html")
    >>> kinprint.report("result.json").figure()
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kinprint.version import __version__

if TYPE_CHECKING:
    from kinprint.reader.checkpoint import Checkpoint
    from kinprint.records import Slice
    from kinprint.report.results import AnyDrawing, ComparisonResult, MatrixResult, StudyDrawing
    from kinprint.report.schema import ComparisonDocument, MatrixDocument, StudyDocument

__all__ = ["Slice", "__version__", "compare", "matrix", "open", "report", "study"]


if TYPE_CHECKING:

    def report(
        given: str | Path | bytes | ComparisonDocument | MatrixDocument | StudyDocument,
        language: str = "en",
    ) -> AnyDrawing:
        """A result from its JSON file or its document, to look at and to save in other forms."""


def __getattr__(name: str) -> object:
    if name == "Slice":  # loaded when asked for: `kinprint --help` needs no records
        from kinprint.records import Slice

        return Slice
    if name == "report":  # the package of that name, which is the verb
        from importlib import import_module

        return import_module("kinprint.report")
    raise AttributeError(f"module 'kinprint' has no attribute {name!r}")


def open(model: str, *, budget: int | None = None, cache: bool = True) -> Checkpoint:
    """Open a model by name, path or address; only its list of files and index are read.

    `budget` limits the bytes that reading it may cost; `cache` keeps what was read.
    """
    from kinprint.reader.cache import Cache
    from kinprint.reader.checkpoint import open_checkpoint
    from kinprint.reader.fetch import Fetcher

    return open_checkpoint(model, Fetcher(cache=Cache.default() if cache else None, budget=budget))


def compare(
    a: str,
    b: str,
    *,
    controls: Sequence[str] = (),
    level: str = "standard",
    alpha: float = 1e-6,
    budget: int | None = None,
    seed: int = 0,
    base: str | None = None,
    cache: bool = True,
    language: str = "en",
) -> ComparisonResult:
    """Say how two models are related, with a p-value, from a few megabytes of each.

    `level` is quick, standard or deep; `budget` limits the bytes of both together; `controls`
    are models known to be unrelated; `base` is what an adapter stands on. `language`, "en" or
    "ko", is what the result speaks where it shows itself.
    """
    from kinprint.lineage.compare import compare_models
    from kinprint.lineage.results import Settings
    from kinprint.reader.cache import Cache
    from kinprint.reader.fetch import Fetcher
    from kinprint.report.results import of_comparison

    settings = Settings(level, alpha, budget, seed, base)
    with Fetcher(cache=Cache.default() if cache else None, budget=budget) as fetcher:
        found = compare_models(a, b, fetcher, settings, controls)
    return of_comparison(found, found.cost, language)


def matrix(
    models: Sequence[str],
    *,
    level: str = "standard",
    alpha: float = 1e-6,
    budget: int | None = None,
    seed: int = 0,
    base: str | None = None,
    cache: bool = True,
    jobs: int = 1,
    language: str = "en",
) -> MatrixResult:
    """Say how all pairs of models are related; each model is read once.

    With more than one of `jobs` pairs are compared in processes of their own, so a script
    that asks for them needs the usual guard around its main part.
    """
    from kinprint.lineage.matrix import compare_all
    from kinprint.lineage.results import Settings
    from kinprint.reader.cache import Cache
    from kinprint.reader.fetch import Fetcher
    from kinprint.report.results import of_matrix

    settings = Settings(level, alpha, budget, seed, base)
    with Fetcher(cache=Cache.default() if cache else None, budget=budget) as fetcher:
        found = compare_all(models, fetcher, settings, jobs)
    return of_matrix(found, found.cost, language)


def study(
    name: str, *models: str, base: str | None = None, cache: bool = True, language: str = "en"
) -> StudyDrawing:
    """Run a named study of models; `kinprint study list` names them all."""
    from kinprint.model.opening import open_models
    from kinprint.reader.cache import Cache
    from kinprint.reader.checkpoint import open_checkpoints
    from kinprint.reader.fetch import Fetcher
    from kinprint.report.build.study import study_document
    from kinprint.report.results import StudyDrawing
    from kinprint.report.schema import settled
    from kinprint.studies.registry import study_named
    from kinprint.studies.running import run_studies
    from kinprint.studies.study import Request

    chosen, request = study_named(name), Request()
    with Fetcher(cache=Cache.default() if cache else None) as fetcher:
        opened = open_models(open_checkpoints(models, fetcher), base)
        (result,) = run_studies([chosen], opened, request)
        refs = [model.checkpoint.ref for model in opened]
    document = study_document(result, chosen, request, refs, fetcher.spent)
    return StudyDrawing(settled(document), language)
