"""Compare models: two of them, or all pairs of many."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kinprint.algebra import cores
from kinprint.lineage.opening import open_all
from kinprint.lineage.results import Comparison as Compared
from kinprint.lineage.results import Settings
from kinprint.records import ALPHA, TAKEN_OVER, Level, Progress
from kinprint.report.results.comparison import Comparison, Matrix
from kinprint.report.schema import settled
from kinprint.verbs.answers import Answers, Question, may_be_kept
from kinprint.verbs.reader import (
    Meter,
    ModelName,
    Reader,
    checked_seed,
    device_of,
    fetcher_of,
    reading,
    teller,
    uses_cache,
    written_name,
)

if TYPE_CHECKING:
    from kinprint.diff.sampled_parts import SampledChanges
    from kinprint.report.results.plan import Plan


def compare(
    a: ModelName,
    b: ModelName,
    *,
    controls: Sequence[ModelName] = (),
    given: ModelName | None = None,
    direction: bool = False,
    level: Level | str = Level.STANDARD,
    alpha: float = ALPHA,
    seed: int = 0,
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    hashes: bool = True,
    details: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Comparison:
    """Say how two models are related, with a p-value, from a few megabytes of each.

    The order of the two makes no difference: what is found is a common origin, not a direction.

    Parameters
    ----------
    a, b : str or path
        The models: org/name, org/name@revision, hf://…, the address of a model page, a folder,
        a file, or an https:// address.
    controls : sequence of str or path
        Models known to be unrelated to both and to each other. They calibrate what has no exact
        null, and never change what has one.
    given : str or path, optional
        A base that both were made from: the result says what they share beyond it.
    direction : bool
        Whether to look for traces of which came first, where the two are linked.
    level : Level or str
        How much to read: "quick", "standard" or "deep".
    alpha : float
        The chance of calling strangers related.
    seed : int
        Chooses which rows, layers and tokens are read where not all are, by a public rule that
        is the same for all models, and draws the samples of the null in pictures.
    base : str or path, optional
        What an adapter stands on, where it does not name it or the base lies elsewhere.
    budget : int or str, optional
        Most bytes to read of all models together, as a number or in words such as "64MB".
    cache : bool
        Whether to take what was read before from the cache, and to keep what is read. An answer
        about two models of the Hub is kept too, and given again as long as their commits, what is
        asked and kinprint itself are the same: `answered` then says on which day it was found. Not
        so with controls, a base, a budget or directions, nor with a reader that has read before.
    hashes : bool
        Whether to hash weight files on this machine, which reads them whole: their sha256 then
        says which files were compared. Not done where there is a budget.
    details : bool
        Whether to say, beside the answer, where shared weights are and what changed, as far as was
        read anyway, how alike norms are by the measures of disputes, and what a test gives by
        chance (`shared`, `changes` and `norms` of the result, `null` of its evidence). Pages and
        files show them, a terminal does not, and the answer is the same without.
    progress : callable, optional
        Called with a `Progress` whenever more was planned or read, from any thread.
    reader : Reader, optional
        Reads in place of one made for this call; it has a budget, a cache and progress of its own.
    language : str
        What the result speaks where it shows itself, such as "en" or "ko".

    Returns
    -------
    Comparison
        The relation, how sure it is, and all evidence.

    Raises
    ------
    BadOption
        An option has a value that makes no sense.
    BadReference
        A name names no model.
    SourceError
        A model cannot be reached or read.
    FormatError
        Its files are not what they claim to be.
    BudgetExceeded
        Even the least that is needed costs more than the budget.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.compare(zoo / "base-a", zoo / "a-cpt")
    >>> found.relation is kinprint.Relation.DERIVED
    True
    """
    with reading(reader, budget, cache, progress) as own:
        settings = _settings(level, alpha, own.budget, seed, base)
        meter = Meter(own)
        strangers = [os.fspath(one) for one in controls]
        fetcher, pair, beyond = fetcher_of(own), (os.fspath(a), os.fspath(b)), None
        if given is not None:
            from kinprint.diff.given import beyond_base

            beyond = beyond_base(*pair, os.fspath(given), fetcher, settings, len(strangers))
        beside = 0 if given is None else 1
        # Of a reader that has read before, what it costs and whose bytes it holds depend on that.
        plain = not (fetcher.sources or strangers or direction) and base is None
        opened = open_all([*pair, *strangers], fetcher, settings)
        question, answers = None, Answers.default()
        if plain and own.budget is None and uses_cache(own):
            device = device_of(own)
            question = Question.of(opened, settings, device, hashes=hashes, details=details)
        if question is not None and (kept := answers.find(question, meter)) is not None:
            return Comparison(kept, language)
        from kinprint.lineage.compare import compare_opened
        from kinprint.report.build.comparison import comparison_document

        found = compare_opened(
            opened, settings, strangers, hashes=hashes, details=details, beside=beside
        )
        traced = None
        if direction and found.verdict.relation.linked:
            from kinprint.diff.direction import direction_of

            others = len(strangers) + beside
            traced = direction_of(*pair, fetcher, settings, others)
        changed = _changes(found) if details else None
        document = settled(comparison_document(found, meter.cost, beyond, traced, changed))
        if question is not None and may_be_kept(found, opened):
            answers.keep(question, document)
        return Comparison(document, language)


def _changes(found: Compared) -> SampledChanges | None:
    if found.verdict.relation not in TAKEN_OVER:
        return None
    from kinprint.diff.sampled_parts import changes_of  # half of the room, for relatives alone

    return changes_of(found)


def matrix(
    models: Iterable[ModelName],
    *,
    level: Level | str = Level.STANDARD,
    alpha: float = ALPHA,
    seed: int = 0,
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    jobs: int | None = 1,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Matrix:
    """Say how all pairs of models are related; each model is read once.

    A model that cannot be read is set aside, as long as two remain.

    Parameters
    ----------
    models : iterable of str or path
        Two models or more, named as for `compare`.
    jobs : int, optional
        Processes to compare in, None for one a core. A script that asks for more than one needs
        the usual guard around its main part.
    level, alpha, seed, base, budget, cache, progress, reader, language
        As for `compare`. A level's bytes are for a pair; here each model may cost half of them.

    Returns
    -------
    Matrix
        The relation of every pair, and what could not be read.

    Raises
    ------
    BadOption
        An option has a value that makes no sense, or there are fewer than two models.
    BadReference, SourceError, FormatError
        Fewer than two models can be read; this is what the first one failed with.
    BudgetExceeded
        Even the least that is needed costs more than the budget.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.matrix([zoo / "base-a", zoo / "a-cpt", zoo / "nowhere"])
    >>> found.relations, found.unread[0].given.endswith("nowhere")
    ((<Relation.DERIVED: 'derived'>,), True)
    """
    from kinprint.lineage.matrix import compare_all
    from kinprint.report.build.comparison import matrix_document
    from kinprint.report.results.result import Failure

    with reading(reader, budget, cache, progress) as own:
        settings = _settings(level, alpha, own.budget, seed, base)
        meter = Meter(own)
        given = [os.fspath(one) for one in models]
        jobs = cores() if jobs is None else jobs
        found = compare_all(given, fetcher_of(own), settings, jobs, teller(own))
        failures = [Failure(one.given, one.error) for one in found.unread]
        for pair in found.failed:
            names = (found.models[at].given for at in (pair.a, pair.b))
            failures.append(Failure(" × ".join(names), pair.error))
        document = settled(matrix_document(found, meter.cost))
        return Matrix(document, language, failures=tuple(failures))


def plan_comparison(
    models: Iterable[ModelName],
    *,
    level: Level | str = Level.STANDARD,
    alpha: float = ALPHA,
    seed: int = 0,
    base: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Plan:
    """Say what `compare` or `matrix` would cost; headers are read to know it, and no weight.

    Parameters
    ----------
    models : iterable of str or path
        The models that would be compared, controls included.
    level, alpha, seed, base, budget, cache, progress, reader, language
        As for `compare`; the error and the seed change no cost and are put down alone.

    Returns
    -------
    Plan
        Bytes and requests of every stage, and what all of it costs at most.

    Raises
    ------
    BadOption, BadReference, SourceError, FormatError, BudgetExceeded
        As for `compare`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> plan = kinprint.plan_comparison([zoo / "base-a", zoo / "a-cpt"], level="quick")
    >>> plan.cost.bytes  # files on this machine are read in place
    0
    """
    from kinprint.lineage.planning import plan_comparison as plan_pair
    from kinprint.report.build.comparison import plan_document
    from kinprint.report.results.plan import Plan

    with reading(reader, budget, cache, progress) as own:
        settings = _settings(level, alpha, own.budget, seed, base)
        meter = Meter(own)
        found = plan_pair(tuple(os.fspath(one) for one in models), fetcher_of(own), settings)
        return Plan(plan_document(found, meter.cost), language)


def _settings(
    level: Level | str, alpha: float, budget: int | None, seed: int, base: ModelName | None
) -> Settings:
    return Settings(level, alpha, budget, checked_seed(seed), written_name(base))
