"""The studies of a public dispute, done again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kinprint import text
from kinprint.errors import (
    BadOption,
    FileMissing,
    FormatError,
    KinprintError,
    SourceError,
    attempt,
)
from kinprint.mirror.loopback import loopback_hub
from kinprint.model.model import Model
from kinprint.model.opening import open_model
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import side_by_side
from kinprint.records import Cost, Progress, Step
from kinprint.replica.build import build_replicas
from kinprint.report.build.study import reproduction_document, study_document
from kinprint.report.results.reproduction import Reproduction
from kinprint.report.schema import settled
from kinprint.studies.reproduction import Reproduction as Dispute
from kinprint.studies.reproduction import reproduction
from kinprint.studies.reproduction.published import compare_published
from kinprint.studies.results import Result
from kinprint.studies.running import Tell, try_tasks
from kinprint.studies.study import Request
from kinprint.verbs.reader import Meter, Reader, checked_seed, fetcher_of, reading, teller
from kinprint.verbs.studying import ROWS


def reproduce(
    name: str = "solar-vs-glm",
    *,
    replica: bool = False,
    revisions: str | os.PathLike[str] | None = None,
    rows: int = ROWS,
    seed: int = 0,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Reproduction:
    """Do the analyses of a public dispute again, with the published number beside every number.

    Parameters
    ----------
    name : str
        The dispute.
    replica : bool
        Whether to work offline, on sparse replicas made from the published figures. They are
        built in a temporary folder and served by this process; they are not the real models.
    revisions : str or path, optional
        A file `revisions.json` that an earlier run wrote: its commits are read.
    rows : int
        Rows of a matrix to sample, where the published number is not of the whole matrix. Keys and
        values of layers 10, 20 and 30 and all routers are read whole, about 240 MB.
    seed : int
        Chooses the rows.
    budget, cache, progress, reader, language
        As for `compare`. What is read of replicas is not kept.

    Returns
    -------
    Reproduction
        Every study, and every published number with the one found. `missing` names models that
        could not be had; averages are then over the others, and say so.

    Raises
    ------
    BadOption
        There is no such dispute, or `revisions` is no such file.
    SourceError, FormatError
        None of the models can be read.
    BudgetExceeded
        Reading costs more than allowed.

    Examples
    --------
    >>> import kinprint
    >>> found = kinprint.reproduce("solar-vs-glm", replica=True)  # doctest: +SKIP
    >>> len(found.numbers)  # doctest: +SKIP
    1839
    """
    dispute, request = reproduction(name), Request(rows=rows, seed=checked_seed(seed))
    pinned = _pinned(revisions, dispute)
    with (
        reading(reader, budget, cache, progress) as given,
        _place(dispute, replica, given) as own,
    ):
        meter = Meter(own)
        models, missing = open_models(dispute, own, pinned, replica=replica)
        return carry_out(dispute, models, request, meter, missing, teller(own), language)


def carry_out(
    dispute: Dispute,
    models: Mapping[str, Model],
    request: Request,
    meter: Meter | None = None,
    missing: Mapping[str, KinprintError] | None = None,
    tell: Tell = lambda *told: None,
    language: str = "en",
) -> Reproduction:
    """Do all studies of a dispute on models that are open.

    A study that cannot be done without a model that was lost is left out; the document names the
    model.
    """
    absent = {name: error.message for name, error in (missing or {}).items()}
    tasks = dispute.tasks(models, request, absent)
    results: dict[str, Result] = {}
    for (step, task), result in zip(
        tasks.items(), try_tasks(list(tasks.values()), tell), strict=True
    ):
        if isinstance(result, Result):
            results[step] = result
            absent |= {name: why for name, why in result.lost.items() if name not in absent}
        elif isinstance(result, SourceError | FormatError):
            absent.setdefault(" – ".join(task.names), result.message)
        else:
            raise result
    studies = {}
    for step, result in results.items():
        task = tasks[step]
        refs = [model.checkpoint.ref for model in task.models]
        studies[step] = settled(study_document(result, task.study, task.request, refs))
    document = reproduction_document(
        dispute.name,
        {name: model.checkpoint.ref for name, model in models.items()},
        absent,
        results,
        compare_published(results, dispute.numbers, absent),
        replica=any(model.checkpoint.labels for model in models.values()),
        cost=Cost() if meter is None else meter.cost,
    )
    return Reproduction(document, studies, language)


def open_models(
    dispute: Dispute, reader: Reader, pinned: Mapping[str, str], *, replica: bool
) -> tuple[dict[str, Model], dict[str, KinprintError]]:
    """All models side by side, those that cannot be had by name; none at all is an error."""
    fetcher, tell, names = fetcher_of(reader), teller(reader), list(dispute.models)
    waiting = dict.fromkeys(names)

    def open_one(name: str) -> Model | KinprintError:
        repository = dispute.replicas.get(name) if replica else None
        place = repository or dispute.models[name]
        commit = f"@{pinned[name]}" if name in pinned else ""
        found = attempt(lambda: open_model(open_checkpoint(place + commit, fetcher)))
        waiting.pop(name)
        if waiting:
            done = len(names) - len(waiting)
            tell(Step.OPENING, ", ".join(list(waiting)), done, len(names))
        return found

    tell(Step.OPENING, ", ".join(names), 0, len(names))
    found = dict(zip(names, side_by_side(open_one, names), strict=True))
    models = {name: one for name, one in found.items() if isinstance(one, Model)}
    lost = {name: one for name, one in found.items() if isinstance(one, KinprintError)}
    if not models:
        raise next(iter(lost.values()))
    return models, lost


@contextmanager
def _place(dispute: Dispute, replica: bool, reader: Reader) -> Iterator[Reader]:
    """Where the models are: on the Hub, or built now and served by this process."""
    if not replica:
        yield reader
        return
    names = [dispute.replicas.get(key, place) for key, place in dispute.models.items()]
    teller(reader)(Step.BUILDING, "", 0, 0)
    with tempfile.TemporaryDirectory() as built:
        build_replicas(Path(built), names)
        # No hashes: the files are hundreds of gigabytes of holes.
        with loopback_hub(Path(built), hash_limit=0), reader.again() as own:
            yield own


def _pinned(file: str | os.PathLike[str] | None, dispute: Dispute) -> dict[str, str]:
    """Commits to read, by the model's short name."""
    if file is None:
        return {}
    path = Path(file)
    if not path.is_file():
        raise FileMissing(name=str(path.parent), path=path.name)
    try:
        given = json.loads(path.read_text("utf-8"))
        found = {name: given[name]["commit"] for name in dispute.models if name in given}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        cause = text.message("cause.reproduce.revisions")
        raise BadOption(option="revisions", value=str(file), cause=cause) from None
    return {name: commit for name, commit in found.items() if isinstance(commit, str)}
