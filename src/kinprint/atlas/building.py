"""Filling an atlas, and holding what it says against the models themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from threading import Lock

from msgspec import Struct, field

from kinprint import text
from kinprint.atlas.encoding import encoded
from kinprint.atlas.fingerprint import fingerprint, located, pinned_name
from kinprint.atlas.pools import Pool
from kinprint.atlas.standing import standing_of
from kinprint.atlas.store import Atlas, Entry, Folder, State
from kinprint.errors import AtlasBroken, BadReference, EntryBroken, KinprintError
from kinprint.lineage.matrix import Teller
from kinprint.reader.cache import Cache
from kinprint.reader.fetch import Fetcher
from kinprint.reader.folders import holds_weights
from kinprint.records import Standing, Step
from kinprint.source import open_source

_LIST = ".txt"  # the ending of a list of models, one a line
_COMMENT = "#"
_DEEPEST = 3  # folders inside one another that are looked into for models


class Added(Struct, frozen=True):
    """What became of a model that was to be added to an atlas.

    Attributes
    ----------
    given : str
        The model as it was given.
    id : str
        The digest of its fingerprint; empty where it has none.
    there : bool
        Whether its fingerprint was there before.
    bytes : int
        How many bytes of its files were read for it and are kept; 0 where it was not read again.
    error : KinprintError, optional
        Why it has none.
    searched : bool
        Whether a search of the Hub found it.
    replaced : bool
        Whether it took the place of what an earlier state of its folder held.

    Examples
    --------
    >>> import kinprint, kinprint.demo, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (one,) = kinprint.Atlas(folder).build([kinprint.demo.FOLDER / "zoo" / "base-a"])
    >>> one.there, len(one.id)
    (False, 64)
    """

    given: str
    id: str = ""
    there: bool = False
    bytes: int = 0
    error: KinprintError | None = None
    searched: bool = False
    replaced: bool = False


class Verified(Struct, frozen=True):
    """How a fingerprint of an atlas stands to the model that it names.

    Attributes
    ----------
    id : str
        The digest of the fingerprint.
    name : str
        The model; empty where the fingerprint cannot be read.
    standing : Standing
        Whether it holds the model's bytes.
    error : KinprintError, optional
        Why the model or the fingerprint cannot be read.

    Examples
    --------
    >>> import kinprint, kinprint.demo, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = kinprint.Atlas(folder)
    ...     added = atlas.build([kinprint.demo.FOLDER / "zoo" / "base-a"])
    ...     (one,) = atlas.verify()
    >>> one.standing is kinprint.Standing.RIGHT
    True
    """

    id: str
    name: str
    standing: Standing
    error: KinprintError | None = None


def models_in(given: Iterable[str]) -> Iterator[str]:
    """The models that names stand for: lines of a list, folders inside a folder, or themselves."""
    for name in given:
        place = Path(name)
        if place.suffix == _LIST and place.is_file():
            lines = (line.strip() for line in place.read_text(encoding="utf-8").splitlines())
            yield from (line for line in lines if line and not line.startswith(_COMMENT))
        elif place.is_dir():
            yield from map(str, _models_below(place, _DEEPEST) or [place])
        else:
            yield name


def from_anywhere(given: str) -> str:
    """The name of a model for processes with other folders: a path is told from its root."""
    path = Path(given).expanduser()
    return str(path.absolute()) if "://" not in given and path.exists() else given


def _models_below(folder: Path, depth: int) -> list[Path]:
    """The folder itself if it holds weights, else the folders inside it that do."""
    if holds_weights(folder):
        return [folder]
    inside = sorted(one for one in folder.iterdir() if one.is_dir() and one.name[0] != ".")
    return [found for one in inside for found in _models_below(one, depth - 1)] if depth else []


class Adding(Struct, frozen=True):
    """Adds a model to an atlas: a task for any pool.

    A state of a model that is pinned by a commit is not read where the atlas has it: building goes
    on where it was interrupted, and what is done again because a worker died is not read again.

    Attributes
    ----------
    place
        Of the atlas; whoever does this has to see the same one.
    seed
        Chooses which rows are read.
    base
        What adapters stand on, where they do not say.
    cached
        Whether to use the cache of the machine on which this is done.
    run
        Tells one building from another: what an atlas held before is looked up once for each.
    fetcher
        Reads in this process; None elsewhere, where every model gets one of its own.
    """

    place: str
    seed: int = 0
    base: str | None = None
    cached: bool = True
    run: str = field(default_factory=token_hex)
    fetcher: Fetcher | None = None

    def __call__(self, given: str) -> Added:
        """Add one model."""
        if self.fetcher is not None:
            return self._add(given, self.fetcher)
        with Fetcher(cache=Cache.default() if self.cached else None) as fetcher:
            return self._add(given, fetcher)

    def _add(self, given: str, fetcher: Fetcher) -> Added:
        if given.endswith(_LIST) and "://" not in given and not Path(given).exists():
            raise BadReference(given=given, cause=text.message("cause.atlas.no-list"))
        atlas, state = Atlas(self.place), State.of(open_source(given).ref, self.seed)
        if state is not None:
            before = _states(self.place, self.run).get(state) or atlas.newly_added(state)
            if before is not None:
                return Added(given, before, there=True)
        one = located(fingerprint(given, fetcher, self.seed, self.base))
        there = atlas.has(encoded(one)[0])
        name, folder = atlas.add(one), Folder.of(one.ref, self.seed)
        earlier = () if folder is None else _folders(self.place, self.run).get(folder, ())
        return Added(given, name, there, one.bytes, replaced=atlas.replace(one, earlier))


def _states(place: str, run: str) -> Mapping[State, str]:
    """What an atlas had when a building first asked for it in this process."""
    with _LOOKING:
        return _looked_up(place, run)


def _folders(place: str, run: str) -> Mapping[Folder, Sequence[str]]:
    """The same for folders."""
    with _LOOKING:
        return _folders_looked_up(place, run)


@lru_cache(1)
def _looked_up(place: str, run: str) -> Mapping[State, str]:
    return Atlas(place).states()


@lru_cache(1)
def _folders_looked_up(place: str, run: str) -> Mapping[Folder, Sequence[str]]:
    return Atlas(place).folders()


_LOOKING = Lock()


def add_models(given: Sequence[str], task: Adding, pool: Pool, tell: Teller) -> Iterator[Added]:
    """Add models, each told when it is begun, and given when it is done.

    What fails is told, and the others are added all the same. What was added has to be in the
    atlas as it is seen from here: a folder of that name elsewhere is another atlas.
    """
    atlas = Atlas(task.place)
    atlas.index()  # an atlas that cannot be read is told before anything is begun

    def begun() -> Iterator[str]:
        for number, name in enumerate(given, 1):
            tell(Step.READING, name, number, len(given))
            yield name

    for name, found in pool(task, begun()):
        if isinstance(found, KinprintError):
            yield Added(name, error=found)
        elif atlas.has(found.id):
            yield found
        else:
            raise AtlasBroken(place=task.place, cause=text.message("cause.atlas.elsewhere"))


def verify_all(atlas: Atlas, tell: Teller) -> Iterator[Verified]:
    """Hold every fingerprint of an atlas against the model that it names."""
    atlas.names()
    index, faults = atlas.index()
    for error in faults:
        yield Verified(str(error.fields["entry"]), "", Standing.BROKEN, error)
    for number in range(len(index)):
        entry = index.entry(number)
        tell(Step.READING, entry.ref.name, number + 1, len(index))
        yield _verified(entry, atlas)


def _verified(entry: Entry, atlas: Atlas) -> Verified:
    """Read some of what a fingerprint holds again, from the model in the state that it names."""

    def outcome(standing: Standing, error: KinprintError | None = None) -> Verified:
        return Verified(entry.id, entry.ref.name, standing, error)

    try:
        one = atlas.read(entry.id)
    except EntryBroken as error:
        return outcome(Standing.BROKEN, error)
    if one.ref != entry.ref:  # the index was written by somebody else
        return outcome(Standing.FORGED)
    try:
        return outcome(standing_of(one, open_source(pinned_name(one.ref))))
    except KinprintError as error:
        return outcome(Standing.GONE, error)
