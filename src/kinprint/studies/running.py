"""Carrying out studies: plan all of them, read everything once, compute.

A model that cannot be read has rows that say so. One that makes a study fail in a way that
nobody foresaw is set aside if the study works without it: the result names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack

from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.errors import BadOption, InternalError, KinprintError, attempt
from kinprint.model.model import Model
from kinprint.model.tokens import Vocabulary
from kinprint.reader.fetch import Want
from kinprint.records import ByteRange, Cost, History, Step
from kinprint.studies.reading import (
    TensorsRead,
    plan_tensors,
    read_documents,
    read_histories,
    read_tensors,
    read_vocabularies,
)
from kinprint.studies.results import Result
from kinprint.studies.study import (
    Document,
    Procedure,
    ReadTensor,
    Request,
    Study,
    StudyInput,
    TensorRows,
)
from kinprint.text import Words
from kinprint.titles import short_titles
from kinprint.workers import workers

Sample = tuple[int | None, int]  # rows of a matrix, None for all, and the seed
Tell = Callable[[Step, str, int, int], object]
"""Hears which step begins, of what, and how many of how many."""


class Task(Struct, frozen=True):
    """One study of some models; `names` are what results call them.

    `notes` are sentences about models that were set aside; results begin with them.
    """

    study: Study
    models: tuple[Model, ...]
    request: Request
    names: tuple[str, ...] = ()
    notes: tuple[Words, ...] = ()

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The names that were given, else the shortest that tell the models apart."""
        return self.names or tuple(short_titles([one.checkpoint.ref for one in self.models]))

    def without_each(self, error: InternalError) -> Iterator[Task]:
        """The task without one of its models, for each of them, if the study takes so few."""
        if len(self.models) <= self.study.least:
            return
        names = self.shown_names
        for at, name in enumerate(names):
            note = text.words("study.common.set-aside", model=name, error=error.message)
            yield replace(
                self,
                models=self.models[:at] + self.models[at + 1 :],
                names=names[:at] + names[at + 1 :],
                notes=(*self.notes, note),
            )


def plan_studies(studies: Sequence[Study], models: Sequence[Model], request: Request) -> Cost:
    """What doing studies would still cost, cached bytes and local files not counted.

    Headers, and the tokenizers of studies that need them, are read to know this.
    """
    tasks = [Task(study, tuple(models), request) for study in studies]
    prepared = prepare(tasks, models)
    planned = plan_tensors(models, [rows for one in prepared for rows in one.tensors], request)
    documents = dict.fromkeys(document for one in prepared for document in one.documents)
    wants: list[Want] = []
    for at, model in enumerate(models):
        checkpoint = model.checkpoint
        mine = [each.reading for each in planned.readings if each.wanted.model == at]
        wants += checkpoint.wants([part for reading in mine for part in reading.slices])
        small = [checkpoint.files[path] for which, path in documents if which == at]
        wants += [Want(checkpoint.source, one, (ByteRange(0, one.size),)) for one in small]
    if not wants:
        return Cost()
    plans = models[0].checkpoint.fetcher.plan(wants)
    return sum((each.cost for each in plans), Cost())


def run_tasks(tasks: Sequence[Task]) -> list[Result]:
    """Do several studies, each of its own models, with one sweep of reading for all."""
    results = try_tasks(tasks)
    for result in results:
        if isinstance(result, KinprintError):
            raise result
    return [result for result in results if isinstance(result, Result)]


def try_tasks(
    tasks: Sequence[Task], tell: Tell = lambda *told: None
) -> list[Result | KinprintError]:
    """The same, with the error of each study that cannot be done in its place.

    A study that needs no model is computed while the others wait for the network. `tell` hears
    of each step as it begins. What concerns all studies is raised.
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
        found = iter(_run_together(reading, tell, len(apart)))
        done = iter(aside)
        return [next(found) if task.models else next(done).result() for task in tasks]


def _run_together(tasks: Sequence[Task], tell: Tell, apart: int) -> list[Result | KinprintError]:
    """Studies of models, told as those after the ones that are computed apart."""
    models = list({id(model): model for task in tasks for model in task.models}.values())
    tell(Step.PLANNING, "", 0, 0)
    prepared = prepare(tasks, models)
    sweeps = _read(models, prepared, tell)
    documents = read_documents(models, [paper for one in prepared for paper in one.documents])
    # Arrays are let go with the last study that needs them: they are most of the memory.
    left = Counter((one.sample, rows) for one in prepared for rows in set(one.tensors))
    results: list[Result | KinprintError] = []
    for at, one in enumerate(prepared):
        tell(Step.COMPUTING, one.task.study.name, apart + at + 1, apart + len(prepared))
        tensors = sweeps[one.sample].tensors
        result = attempt(one.run, tensors, documents, sweeps[one.sample].lost)
        results.append(
            _without_one(one.task, result) if isinstance(result, InternalError) else result
        )
        for rows in set(one.tensors):
            left[one.sample, rows] -= 1
            if not left[one.sample, rows]:
                del tensors[rows]
    return results


def _read(
    models: Sequence[Model], prepared: Sequence[Prepared], tell: Tell
) -> dict[Sample, TensorsRead]:
    """Everything that studies need, those that sample alike in one sweep."""
    groups: dict[Sample, list[Prepared]] = {}
    for one in prepared:
        groups.setdefault(one.sample, []).append(one)
    found = {}
    for at, (sample, group) in enumerate(groups.items()):
        tell(Step.READING, "", at + 1, len(groups))
        wanted = [rows for one in group for rows in one.tensors]
        found[sample] = read_tensors(models, wanted, group[0].task.request)
    return found


def _run_apart(task: Task) -> Result:
    (one,) = prepare([task], [])
    return one.run({}, {}, {})


def _without_one(task: Task, error: InternalError) -> Result | KinprintError:
    """A task that failed in a way that nobody foresaw, done without the model it failed by."""
    for smaller in task.without_each(error):
        (one,) = prepare([smaller], smaller.models)
        read = read_tensors(smaller.models, one.tensors, smaller.request)
        documents = read_documents(smaller.models, one.documents)
        result = attempt(one.run, read.tensors, documents, read.lost)
        if not isinstance(result, KinprintError):
            return result
    return error


class Prepared(Struct, frozen=True):
    """A task that knows what it needs, with its models counted as all tasks count them."""

    task: Task
    procedure: Procedure
    inputs: StudyInput
    own_tensors: tuple[TensorRows, ...]
    own_documents: tuple[Document, ...]
    numbers: tuple[int, ...]  # of its models among all

    @property
    def sample(self) -> Sample:
        """How it samples: studies that sample alike are read together."""
        return self.task.request.rows, self.task.request.seed

    @property
    def tensors(self) -> tuple[TensorRows, ...]:
        """What it needs, by the numbers of all models."""
        return tuple(replace(rows, model=self.numbers[rows.model]) for rows in self.own_tensors)

    @property
    def documents(self) -> tuple[Document, ...]:
        """The small files it needs, by the numbers of all models."""
        return tuple((self.numbers[at], path) for at, path in self.own_documents)

    def run(
        self,
        tensors: Mapping[TensorRows, ReadTensor],
        documents: Mapping[Document, bytes],
        lost: Mapping[int, KinprintError],
    ) -> Result:
        """The result, once everything has been read; too few models that could be is an error."""
        missing = [at for at in self.numbers if at in lost]
        if missing and len(self.numbers) - len(missing) < self.task.study.least:
            raise lost[missing[0]]
        read = dict(zip(self.own_tensors, map(tensors.__getitem__, self.tensors), strict=True))
        files = dict(
            zip(self.own_documents, map(documents.__getitem__, self.documents), strict=True)
        )
        inputs = replace(self.inputs, tensors=read, documents=files)
        output = self.procedure.run(inputs)
        gone = {
            self.inputs.names[at]: lost[number].message
            for at, number in enumerate(self.numbers)
            if number in lost
        }
        told = (
            text.words("study.common.lost", model=model, error=error)
            for model, error in gone.items()
        )
        findings = (*self.task.notes, *told, *self._layers_note(), *output.findings)
        return Result(
            inputs.study.name,
            inputs.names,
            output.tables,
            output.facts,
            output.charts,
            findings,
            inputs.labels,
            gone,
        )

    def _layers_note(self) -> tuple[Words, ...]:
        """A sentence where the study's own layers do not fit, with those that it took."""
        wanted = self.task.study.layers
        taken = sorted(
            {rows.address.layer for rows in self.own_tensors if rows.address.layer is not None}
        )
        if self.inputs.request.layers is not None or not taken or set(wanted) <= set(taken):
            return ()
        before, after = (", ".join(map(str, layers)) for layers in (wanted, taken))
        return (text.words("study.common.layers-fitted", before=before, after=after),)


class _Preparation(Struct, frozen=True):
    """What planning asks of models: their numbers, tokenizers and commits, by their identity."""

    numbers: Mapping[int, int]
    vocabularies: Mapping[int, Vocabulary | None]
    histories: Mapping[int, History]

    def plan(self, task: Task) -> Prepared:
        """Ask a study what it needs; a model that breaks this is set aside."""
        found = attempt(self._planned, task)
        if not isinstance(found, KinprintError):
            return found
        if isinstance(found, InternalError):
            for smaller in task.without_each(found):
                again = attempt(self._planned, smaller)
                if not isinstance(again, KinprintError):
                    return again
        raise found

    def _planned(self, task: Task) -> Prepared:
        study, keys = task.study, [id(model) for model in task.models]
        inputs = StudyInput(
            study,
            task.models,
            task.shown_names,
            task.request,
            tuple(self.vocabularies[key] for key in keys) if study.vocabulary else (),
            histories=tuple(self.histories[key] for key in keys) if study.history else (),
        )
        procedure = study.load()
        documents = procedure.documents(inputs) if procedure.documents is not None else ()
        needs = tuple(procedure.needs(inputs))
        numbers = tuple(self.numbers[key] for key in keys)
        return Prepared(task, procedure, inputs, needs, tuple(documents), numbers)


def prepare(tasks: Sequence[Task], models: Sequence[Model]) -> list[Prepared]:
    """Read the tokenizers and histories that tasks need, and ask each what else it needs."""
    for task in tasks:
        _check_count(task.study, [one.checkpoint.ref.given for one in task.models])
    vocabularies = {id(one): one for task in tasks if task.study.vocabulary for one in task.models}
    histories = {id(one): one for task in tasks if task.study.history for one in task.models}
    preparation = _Preparation(
        {id(model): at for at, model in enumerate(models)},
        read_vocabularies(list(vocabularies.values())),
        read_histories(list(histories.values())),
    )
    return [preparation.plan(task) for task in tasks]


def _check_count(study: Study, given: Sequence[str]) -> None:
    count, least, most = len(given), study.least, study.most
    if least <= count and (most is None or count <= most):
        return
    if most is None:
        cause = text.message("cause.study-least", study=study.name, least=least)
    elif least == most:
        cause = text.message("cause.study-exactly", study=study.name, least=least)
    else:
        cause = text.message("cause.study-range", study=study.name, least=least, most=most)
    raise BadOption(option="models", value=" ".join(given), cause=cause)
