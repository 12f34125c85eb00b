"""Atlases of fingerprints, and what a model is built on among all models of one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from kinprint import text
from kinprint.algebra import cores
from kinprint.atlas.building import (
    Added,
    Adding,
    Verified,
    add_models,
    from_anywhere,
    models_in,
    verify_all,
)
from kinprint.atlas.declared import declared_in
from kinprint.atlas.fingerprint import fingerprint
from kinprint.atlas.identify import SHORTLIST, Deep, identify_model
from kinprint.atlas.pairs import SHORTLIST as CANDIDATES
from kinprint.atlas.pools import pool_of
from kinprint.atlas.search import search
from kinprint.atlas.store import Atlas as Store
from kinprint.atlas.store import Entry
from kinprint.atlas.tree import tree_of
from kinprint.errors import BadOption, KinprintError
from kinprint.lineage.about.claims import Claim
from kinprint.records import Progress
from kinprint.report.build.identify import identify_document
from kinprint.report.build.tree import tree_document
from kinprint.report.results.identify import Identification
from kinprint.report.results.tree import FamilyTree
from kinprint.report.schema import settled
from kinprint.source import open_source
from kinprint.source.repository import find_models
from kinprint.verbs.reader import (
    Meter,
    ModelName,
    Reader,
    checked_seed,
    fetcher_of,
    reading,
    teller,
    uses_cache,
    written_name,
)


class AtlasEntry(Struct, frozen=True):
    """A model of an atlas.

    Attributes
    ----------
    id : str
        The digest of its fingerprint.
    given, name, commit : str
        The model as it was named (a folder by its path), its canonical name, and the state that
        was read.
    seed : int
        Chose which rows were read.
    architecture : str
        What it calls its architecture.
    claims : tuple of str
        Models that it names as its origin.
    likeness : float, optional
        How alike its key is to that of a model that was searched for: at most 1, about 0 of
        strangers. It ranks and decides nothing.

    Examples
    --------
    >>> import kinprint, kinprint.demo, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = kinprint.Atlas(folder)
    ...     added = atlas.build([kinprint.demo.FOLDER / "zoo" / "base-a"])
    ...     [entry.architecture for entry in atlas.entries()]
    ['LlamaForCausalLM']
    """

    id: str
    given: str
    name: str
    commit: str
    seed: int
    architecture: str
    claims: tuple[str, ...]
    likeness: float | None = None


class AtlasContents(Struct, frozen=True):
    """What an atlas holds.

    Attributes
    ----------
    place : str
        Where it is.
    models : int
        How many models it has.
    architectures : mapping of str to int
        How many there are of each architecture, the most frequent first.
    declared : int
        How many name an origin.
    faults : tuple of KinprintError
        What is wrong with fingerprints that cannot be used.

    Examples
    --------
    >>> import kinprint, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kinprint.Atlas(folder).contents().models
    0
    """

    place: str
    models: int
    architectures: Mapping[str, int] = field(default_factory=dict)
    declared: int = 0
    faults: tuple[KinprintError, ...] = ()


class Atlas:
    """Fingerprints of models in one place.

    A fingerprint is all that a comparison at level standard reads of a model, a few megabytes: two
    of them give the verdict of the files. An atlas can be extended by several at once.

    Parameters
    ----------
    place : str or path, optional
        A folder, or an address such as s3://bucket/atlas or hf://datasets/org/atlas; a folder
        beside the cache if None. It need not exist.

    Examples
    --------
    >>> import kinprint, kinprint.demo, tempfile
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = kinprint.Atlas(folder)
    ...     added = atlas.build([zoo / "base-a", zoo / "nowhere"])
    ...     atlas.contents().models, [one.error is None for one in added]
    (1, [True, False])
    """

    def __init__(self, place: ModelName | None = None) -> None:
        self._store = Store(written_name(place))

    @property
    def place(self) -> str:
        """Where it is."""
        return self._store.place

    def build(
        self,
        models: Iterable[ModelName] = (),
        *,
        search: str | None = None,
        limit: int = 100,
        seed: int = 0,
        base: ModelName | None = None,
        jobs: int | None = 1,
        cluster: str | None = None,
        budget: int | str | None = None,
        cache: bool = True,
        progress: Callable[[Progress], None] | None = None,
        reader: Reader | None = None,
    ) -> list[Added]:
        """Add models; those that are there are passed over, and a failure takes no other with it.

        Parameters
        ----------
        models : iterable of str or path
            Models, named as for `compare`; folders that hold models in folders of their own; files
            that end in .txt with the name of a model on each line.
        search : str, optional
            Words to search the Hub for; what it finds is added too, the most downloaded first.
        limit : int
            How many of these at most.
        seed : int
            Chooses which rows are read. Fingerprints of one seed are compared alone.
        base : str or path, optional
            What adapters stand on, where they do not say.
        jobs : int, optional
            How many processes read models side by side; as many as there are cores if None, and
            one where there is a budget.
        cluster : str, optional
            The address of a Dask scheduler, such as "tcp://10.0.0.1:8786", whose workers read in
            place of this machine. They have to reach the models, and write to the same atlas.
        budget, cache, progress, reader
            As for `compare`; the budget is for all models together, and one process alone can
            keep to it. What other processes read is not in the cost of a reader.

        Returns
        -------
        list of Added
            What became of each model, in the order in which they were given.

        Raises
        ------
        AtlasError
            The place cannot be written to.
        SourceError
            The Hub cannot be searched.
        BudgetExceeded
            Reading would cost more than the budget. What was added stays.
        BadOption
            A budget was given for several processes, or an address is none.
        ClusterError
            The cluster cannot be reached, went away, or cannot do it. What was added stays.

        Examples
        --------
        >>> import kinprint, kinprint.demo, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     added = kinprint.Atlas(folder).build([kinprint.demo.FOLDER / "zoo"])
        >>> len(added)
        4
        """
        seed = checked_seed(seed)
        given = list(models_in(os.fspath(one) for one in models))
        searched = [] if search is None else find_models(search, limit)
        given = list(dict.fromkeys((*given, *searched)))
        with reading(reader, budget, cache, progress) as own:
            several = cluster is not None or jobs not in (1, None)
            if several and own.budget is not None:
                cause = text.message("cause.atlas.budget", option="jobs")
                raise BadOption(option="budget", value=own.budget, cause=cause)
            count = 1 if own.budget is not None else min(jobs or cores(), max(len(given), 1))
            place, under = self.place, written_name(base)
            if cluster is not None:
                given = [from_anywhere(one) for one in given]
                place, under = self._store.address, under and from_anywhere(under)
            alone = fetcher_of(own) if cluster is None and count == 1 else None
            task = Adding(place, seed, under, uses_cache(own), fetcher=alone)
            found = list(add_models(given, task, pool_of(count, cluster), teller(own)))
        order = {name: at for at, name in enumerate(given)}
        found.sort(key=lambda one: order[one.given])
        return [replace(one, searched=one.given in searched) for one in found]

    def entries(self) -> list[AtlasEntry]:
        """All models, by name.

        Returns
        -------
        list of AtlasEntry
            What the index has of each.

        Raises
        ------
        AtlasBroken
            The place cannot be read.

        Examples
        --------
        >>> import kinprint, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kinprint.Atlas(folder).entries()
        []
        """
        return [_entry(one) for one in self._store.to_read().index()[0].entries()]

    def contents(self, *, declared: ModelName | None = None) -> AtlasContents:
        """What it holds, in numbers.

        Parameters
        ----------
        declared : str or path, optional
            A Parquet table in the form of the dataset hub-stats: models that name an origin there
            are counted too.

        Returns
        -------
        AtlasContents
            How many models, of which architectures, and what is wrong.

        Raises
        ------
        AtlasBroken
            The place cannot be read.
        BadOption
            The table cannot be read, or is none of that form.

        Examples
        --------
        >>> import kinprint, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     kinprint.Atlas(folder).contents().architectures
        {}
        """
        index, faults = self._store.to_read().index()
        kinds = Counter(index.column("architecture"))
        names = index.column("name")
        told = declared_in(os.fspath(declared), set(names)) if declared is not None else {}
        claims = zip(names, index.column("claims"), strict=True)
        count = sum(own != "[]" or name in told for name, own in claims)
        return AtlasContents(self.place, len(index), dict(kinds.most_common()), count, faults)

    def search(
        self,
        model: ModelName,
        count: int = 10,
        *,
        seed: int = 0,
        base: ModelName | None = None,
        budget: int | str | None = None,
        cache: bool = True,
        progress: Callable[[Progress], None] | None = None,
        reader: Reader | None = None,
    ) -> list[AtlasEntry]:
        """The models with the most alike keys. Keys rank; `identify` runs the tests.

        Parameters
        ----------
        model : str or path
            The model, named as for `compare`.
        count : int
            How many models are wanted.
        seed, base, budget, cache, progress, reader
            As for `build`.

        Returns
        -------
        list of AtlasEntry
            The most alike first.

        Raises
        ------
        BadReference, SourceError, FormatError, BudgetExceeded
            As for `compare`.
        AtlasBroken
            The place cannot be read.

        Examples
        --------
        >>> import kinprint, kinprint.demo, tempfile
        >>> zoo = kinprint.demo.FOLDER / "zoo"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     atlas = kinprint.Atlas(folder)
        ...     added = atlas.build([zoo / "base-a", zoo / "base-b"])
        ...     found = atlas.search(zoo / "a-cpt")
        >>> found[0].name.endswith("base-a")
        True
        """
        store, seed = self._store.to_read(), checked_seed(seed)
        with reading(reader, budget, cache, progress) as own:
            one = fingerprint(os.fspath(model), fetcher_of(own), seed, written_name(base))
        index, _ = store.index()
        matches, _ = search(one.towers, store, index, count)
        return [_entry(match.entry, match.likeness) for match in matches]

    def tree(
        self,
        *,
        seed: int | None = None,
        shortlist: int = CANDIDATES,
        declared: ModelName | None = None,
        jobs: int | None = 1,
        cluster: str | None = None,
        progress: Callable[[Progress], None] | None = None,
        language: str = "en",
    ) -> FamilyTree:
        """Say which models belong together, and who was plausibly made from whom.

        Keys say which pairs are compared, fingerprint against fingerprint. Every p-value is paid
        for all pairs of the atlas.

        Parameters
        ----------
        seed : int, optional
            Models that were read with another are left out; that of most models if None.
        shortlist : int
            How many models each is compared with at most, by its own keys.
        declared : str or path, optional
            A Parquet table of what models of the Hub declare, in the form of the dataset
            hub-stats, beside what their own files say.
        jobs : int, optional
            Processes that compare pairs side by side; one for each core if None.
        cluster : str, optional
            The address of a Dask scheduler whose workers do so in place of this machine; they have
            to reach the atlas.
        progress : callable, optional
            Called with a `Progress` for each piece of work that is done.
        language : str
            What the result speaks where it shows itself.

        Returns
        -------
        FamilyTree
            Families, edges with what tells their direction, and other links.

        Raises
        ------
        AtlasBroken
            The place cannot be read.
        BadOption
            The table cannot be read, or is none of that form; or an address is none.
        ClusterError
            The cluster cannot be reached, went away, or cannot do it.

        Examples
        --------
        >>> import kinprint, kinprint.demo, tempfile
        >>> zoo = kinprint.demo.FOLDER / "zoo"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     atlas = kinprint.Atlas(folder)
        ...     added = atlas.build([zoo / "base-a", zoo / "a-cpt"])
        ...     found = atlas.tree()
        >>> found.edges[0].relation.value
        'derived'
        """
        seed = None if seed is None else checked_seed(seed)
        with Reader(progress=progress) as own:
            meter = Meter(own)
            pool = pool_of(jobs, cluster)
            table = written_name(declared)
            found = tree_of(
                self._store.to_read(), seed, shortlist, pool, teller(own), declared=table
            )
            document = tree_document(found, self.place, meter.cost)
            return FamilyTree(settled(document), language)

    def verify(self, *, progress: Callable[[Progress], None] | None = None) -> list[Verified]:
        """Hold every fingerprint against the model that it names: some ranges are read again.

        Parameters
        ----------
        progress : callable, optional
            Called with a `Progress` for each fingerprint.

        Returns
        -------
        list of Verified
            How each stands to its model.

        Raises
        ------
        AtlasBroken
            The place cannot be read.

        Examples
        --------
        >>> import kinprint, kinprint.demo, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     atlas = kinprint.Atlas(folder)
        ...     added = atlas.build([kinprint.demo.FOLDER / "zoo" / "base-a"])
        ...     [one.standing.value for one in atlas.verify()]
        ['right']
        """
        with Reader(progress=progress) as own:
            return list(verify_all(self._store, teller(own)))

    def pull(self, place: ModelName) -> tuple[int, tuple[KinprintError, ...]]:
        """Take over all fingerprints of another atlas, each held against its digest.

        Parameters
        ----------
        place : str or path
            Where the other one is.

        Returns
        -------
        tuple
            How many were new here, and what is wrong with those that were not taken.

        Raises
        ------
        AtlasError
            A place cannot be read or written.

        Examples
        --------
        >>> import kinprint, kinprint.demo, tempfile
        >>> with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        ...     added = kinprint.Atlas(one).build([kinprint.demo.FOLDER / "zoo" / "base-a"])
        ...     kinprint.Atlas(other).pull(one)
        (1, ())
        """
        return self._store.take_from(Store(os.fspath(place)))


def identify(
    model: ModelName,
    *,
    atlas: ModelName | None = None,
    shortlist: int = SHORTLIST,
    deep: int = 0,
    jobs: int | None = 1,
    seed: int = 0,
    base: ModelName | None = None,
    declared: ModelName | None = None,
    budget: int | str | None = None,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    reader: Reader | None = None,
    language: str = "en",
) -> Identification:
    """Say what a model is built on, of all models of an atlas.

    Keys rank all models; the first are compared with it, fingerprint against fingerprint. Every
    p-value is paid for all models of the atlas.

    Parameters
    ----------
    model : str or path
        The model, named as for `compare`.
    atlas : str or path, optional
        Where the atlas is; a folder beside the cache if None.
    shortlist : int
        How many models to compare it with.
    deep : int
        With how many of these to compare it once more at the deep level, from their files, where
        fingerprints leave open whether weights were taken over.
    jobs : int, optional
        Processes to compare in, None for one a core. A script that asks for more than one needs
        the usual guard around its main part.
    seed : int
        Chooses which rows are read; models of the atlas that were read with other seeds are no
        candidates.
    declared : str or path, optional
        A Parquet table of what models of the Hub declare, in the form of the dataset hub-stats;
        what it says of the model is shown beside what the model's own files say.
    base, budget, cache, progress, reader, language
        As for `compare`.

    Returns
    -------
    Identification
        Parents, other relatives, and what would have been seen of the others.

    Raises
    ------
    BadReference, SourceError, FormatError, BudgetExceeded
        As for `compare`.
    AtlasBroken
        The atlas cannot be read.
    BadOption
        The table cannot be read, or is none of that form.

    Examples
    --------
    >>> import kinprint, kinprint.demo, tempfile
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     added = kinprint.Atlas(folder).build([zoo / "base-a", zoo / "base-b"])
    ...     found = kinprint.identify(zoo / "a-rotated", atlas=folder)
    >>> [one.title for one in found.parents]
    ['base-a']
    """
    store, seed = Store(written_name(atlas)).to_read(), checked_seed(seed)
    with reading(reader, budget, cache, progress) as own:
        meter = Meter(own)
        given, told = os.fspath(model), dict[str, tuple[Claim, ...]]()
        if declared is not None:  # a table that is none is told before anything is read
            told = declared_in(os.fspath(declared), {open_source(given).ref.name})
        one = fingerprint(given, fetcher_of(own), seed, written_name(base))
        one = replace(one, claims=(*one.claims, *told.get(one.ref.name, ())))
        further = Deep(deep, fetcher_of(own), written_name(base)) if deep else None
        count = cores() if jobs is None else jobs
        found = identify_model(one, store, shortlist, teller(own), further, count)
        document = identify_document(found, store.place, meter.cost)
        return Identification(settled(document), language)


def _entry(one: Entry, likeness: float | None = None) -> AtlasEntry:
    ref = one.ref
    claims = tuple(claim.model for claim in one.claims)
    return AtlasEntry(
        one.id, ref.given, ref.name, ref.commit, one.seed, one.architecture, claims, likeness
    )
