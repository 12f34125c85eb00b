"""Carrying out studies: plan all of them, read everything once, compute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace

from kinprint import text
from kinprint.errors import BadOption, FormatError, SourceError
from kinprint.model.model import Model, vocabulary_files
from kinprint.model.tokens import Vocabulary
from kinprint.reader.fetch import Want, side_by_side
from kinprint.records import ByteRange, Commit, Cost
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.results import Result
from kinprint.studies.scene import Document, Item, Request, Scene, Taken, plan, take
from kinprint.text import Words
from kinprint.workers import workers


@dataclass(frozen=True, slots=True)
class Task:
    """One study of some models; `names` are what results call them."""

    study: Study
    models: tuple[Model, ...]
    request: Request
    names: tuple[str, ...] = ()


def run_studies(
    studies: Sequence[Study], models: Sequence[Model], request: Request
) -> list[Result]:
    """Do several studies of the same models with one sweep of reading."""
    return run_tasks([Task(study, tuple(models), request) for study in studies])


def plan_studies(studies: Sequence[Study], models: Sequence[Model], request: Request) -> Cost:
    """What doing studies would still cost, cached bytes and local files not counted.

    Headers, and the tokenizers of studies that need them, are read to know this.
    """
    tasks = [Task(study, tuple(models), request) for study in studies]
    prepared = prepare(tasks, models)
    _, planned = plan(models, [item for one in prepared for item in one.items], request)
    papers = dict.fromkeys(paper for one in prepared for paper in one.papers)
    wants: list[Want] = []
    for at, model in enumerate(models):
        checkpoint = model.checkpoint
        mine = [each.reading for each in planned if each.item.model == at]
        wants += checkpoint.wants([part for reading in mine for part in reading.slices])
        small = [checkpoint.files[path] for which, path in papers if which == at]
        wants += [Want(checkpoint.source, one, (ByteRange(0, one.size),)) for one in small]
    if not wants:
        return Cost()
    plans = models[0].checkpoint.fetcher.plan(wants)
    return sum((each.cost for each in plans), Cost())


def run_tasks(tasks: Sequence[Task]) -> list[Result]:
    """Do several studies, each of its own models, with one sweep of reading for all.

    All tasks sample the same rows: `rows` and `seed` of their requests must agree. A study
    that needs no model is computed while the others wait for the network.
    """
    reading = [task for task in tasks if task.models]
    apart = [task for task in tasks if not task.models]
    if not reading:
        return [_run_apart(task) for task in apart]
    with ExitStack() as stack:
        aside: list[Future[Result]] = []
        if apart:
            pool = stack.enter_context(workers(1))
            aside = [pool.submit(_run_apart, task) for task in apart]
        found = iter(_run_together(reading))
        done = iter(aside)
        return [next(found) if task.models else next(done).result() for task in tasks]


def _run_together(tasks: Sequence[Task]) -> list[Result]:
    pool = list({id(model): model for task in tasks for model in task.models}.values())
    prepared = prepare(tasks, pool)
    taken = take(pool, [item for one in prepared for item in one.items], _common(tasks))
    documents = _read_documents(pool, [paper for one in prepared for paper in one.papers])
    # Arrays are let go with the last study that needs them: they are most of the memory.
    left = Counter(item for one in prepared for item in set(one.items))
    results: list[Result] = []
    for one in prepared:
        results.append(one.run(taken, documents))
        for item in set(one.items):
            left[item] -= 1
            if not left[item]:
                del taken[item]
    return results


def _run_apart(task: Task) -> Result:
    (one,) = prepare([task], [])
    return one.run({}, {})


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task that knows what it needs, with its models counted as all tasks count them."""

    task: Task
    how: Procedure
    scene: Scene
    needs: tuple[Item, ...]
    asked: tuple[Document, ...]
    numbers: tuple[int, ...]  # of its models among all

    @property
    def items(self) -> tuple[Item, ...]:
        """What it needs, by the numbers of all models."""
        return tuple(replace(item, model=self.numbers[item.model]) for item in self.needs)

    @property
    def papers(self) -> tuple[Document, ...]:
        """The small files it needs, by the numbers of all models."""
        return tuple((self.numbers[at], path) for at, path in self.asked)

    def run(self, taken: Mapping[Item, Taken], documents: Mapping[Document, bytes]) -> Result:
        """The result, once everything has been read."""
        own = {own: taken[item] for own, item in zip(self.needs, self.items, strict=True)}
        papers = zip(self.asked, self.papers, strict=True)
        files = {own: documents[paper] for own, paper in papers}
        result = self.how.run(self.task.study, replace(self.scene, taken=own, documents=files))
        return replace(result, findings=(*self._fitted(), *result.findings))

    def _fitted(self) -> tuple[Words, ...]:
        """A sentence where the study's own layers do not fit, with those that it took."""
        wanted = self.task.study.layers
        taken = sorted(
            {item.address.layer for item in self.needs if item.address.layer is not None}
        )
        if self.scene.request.layers is not None or not taken or set(wanted) <= set(taken):
            return ()
        before, after = (", ".join(map(str, some)) for some in (wanted, taken))
        return (text.words("study.common.layers-fitted", before=before, after=after),)


def prepare(tasks: Sequence[Task], pool: Sequence[Model]) -> list[Prepared]:
    """Read the tokenizers and histories that tasks need, and ask each what else it needs."""
    for task in tasks:
        _check_count(task.study, len(task.models))
    readers = {id(one): one for task in tasks if task.study.vocabulary for one in task.models}
    # Files come side by side; parsing takes memory, so that is done one after another.
    side_by_side(_fetch_vocabulary, list(readers.values()))
    found = {key: _vocabulary(model) for key, model in readers.items()}
    asked = {id(one): one for task in tasks if task.study.history for one in task.models}
    past = dict(zip(asked, side_by_side(_history, list(asked.values())), strict=True))
    number = {id(model): at for at, model in enumerate(pool)}
    return [
        _prepared(task, found, past, [number[id(one)] for one in task.models]) for task in tasks
    ]


def _prepared(
    task: Task,
    vocabularies: Mapping[int, Vocabulary | None],
    histories: Mapping[int, tuple[Commit, ...]],
    numbers: Sequence[int],
) -> Prepared:
    study = task.study
    scene = Scene(
        task.models,
        task.names or short_names(task.models),
        task.request,
        tuple(vocabularies[id(one)] for one in task.models) if study.vocabulary else (),
        histories=tuple(histories[id(one)] for one in task.models) if study.history else (),
    )
    how = task.study.load()
    papers = how.documents(task.study, scene) if how.documents is not None else ()
    needs = tuple(how.needs(task.study, scene))
    return Prepared(task, how, scene, needs, tuple(papers), tuple(numbers))


def _common(tasks: Sequence[Task]) -> Request:
    samples = {(task.request.rows, task.request.seed) for task in tasks}
    assert len(samples) == 1, "studies that are read together sample alike"
    return tasks[0].request


def short_names(models: Sequence[Model]) -> tuple[str, ...]:
    """Names without their owner, unless two would be the same."""
    last = [model.name.rstrip("/").rpartition("/")[2] or model.name for model in models]
    return tuple(
        model.name if last.count(name) > 1 else name
        for model, name in zip(models, last, strict=True)
    )


def _fetch_vocabulary(model: Model) -> None:
    model.checkpoint.fetch_files(vocabulary_files(model.checkpoint))


def _vocabulary(model: Model) -> Vocabulary | None:
    """A model's tokenizer; one that is broken is noted and counts as none."""
    try:
        return model.vocabulary()
    except FormatError as error:
        model.checkpoint.notes.append(error.message)
        return None


def _history(model: Model) -> tuple[Commit, ...]:
    """A repository's commits; a host that does not tell them is noted and counts as none."""
    try:
        return model.checkpoint.source.history()
    except SourceError as error:
        model.checkpoint.notes.append(error.message)
        return ()


def _read_documents(models: Sequence[Model], wanted: Sequence[Document]) -> dict[Document, bytes]:
    """Small files of all models, read side by side."""

    def read(at: int) -> dict[str, bytes]:
        paths = dict.fromkeys(path for model, path in wanted if model == at)
        return models[at].checkpoint.read_files(list(paths))

    which = sorted({model for model, _ in wanted})
    found = zip(which, side_by_side(read, which), strict=True)
    return {(at, path): raw for at, files in found for path, raw in files.items()}


def _check_count(study: Study, count: int) -> None:
    if count < study.least or (study.most is not None and count > study.most):
        most = "or more" if study.most is None else f"to {study.most}"
        wanted = str(study.least) if study.least == study.most else f"{study.least} {most}"
        raise BadOption(
            option="MODEL", value=f"{count} models", cause=f"'{study.name}' takes {wanted} of them"
        )
