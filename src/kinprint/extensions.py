"""What other packages add: formats, sources, architectures, measures, studies, tests, exports.

A package names an object of its own in an entry point of one of these groups:

    kinprint.formats        a `reader.formats.registry.Format`
    kinprint.sources        a `source.opening.SourceKind`
    kinprint.architectures  a `model.architectures.Architecture`
    kinprint.measures       a `measure.measures.Measure`
    kinprint.studies        a `studies.study.Study`
    kinprint.tests          a test made by `lineage.tests.registry.extension_test`
    kinprint.exports        a `report.exports.Export`

The room that a group belongs to asks for it when it needs more than it has itself, and then each
object is loaded once. Whatever goes wrong is a `fault` of that extension and never an error of the
command. CONTRIBUTING.md has an example of each; `kinprint extensions` lists what is installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, cached_property
from importlib.machinery import PathFinder
from io import FileIO
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from msgspec import Struct

from kinprint.text import Message, message

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FORMATS = "kinprint.formats"
SOURCES = "kinprint.sources"
ARCHITECTURES = "kinprint.architectures"
MEASURES = "kinprint.measures"
STUDIES = "kinprint.studies"
TESTS = "kinprint.tests"
EXPORTS = "kinprint.exports"
GROUPS = (FORMATS, SOURCES, ARCHITECTURES, MEASURES, STUDIES, TESTS, EXPORTS)

_ABOUT = (".dist-info", "egg-info")  # folders in which packages are described

LOADING_SECONDS = 60.0
"""How long the module of an extension may take to load."""

T = TypeVar("T")


class Extension(Struct, Generic[T], frozen=True):
    """An entry point of another package, and the object it names or why that cannot be used.

    `name` is the entry point's own, `value` the place that it points to, `package` the name and
    version of the distribution.
    """

    name: str
    value: str
    package: str
    thing: T | None = None
    fault: Message | None = None


_LOADED: dict[tuple[str, type[Any]], tuple[Extension[Any], ...]] = {}


@cache
def _installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """What installed packages add, by group; looking it up takes a look at each of them."""
    if _only_in_folders() and not any(map(_may_add, sys.path)):
        return dict.fromkeys(GROUPS, ())
    from importlib import metadata

    found = metadata.entry_points()
    return {group: tuple(found.select(group=group)) for group in GROUPS}


def _only_in_folders() -> bool:
    """Whether packages are found on the path alone."""
    finders = (one for one in sys.meta_path if hasattr(one, "find_distributions"))
    return all(one is PathFinder for one in finders)


def _may_add(folder: str) -> bool:
    """Whether some package in a folder of modules adds something, told faster than by loading all.

    Most often none does. Into an archive only Python's own search looks.
    """
    try:
        with os.scandir(folder or ".") as entries:
            about = [one.path for one in entries if one.name.lower().endswith(_ABOUT)]
    except NotADirectoryError:
        return True
    except OSError:
        return False
    return any(map(_names_a_group, about))


def _names_a_group(about: str) -> bool:
    try:
        with FileIO(f"{about}/entry_points.txt") as file:
            return b"[kinprint." in file.read()
    except OSError:
        return False


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """What installed packages add to a group."""
    return _installed()[group]


def extensions(group: str, kind: type[T]) -> tuple[Extension[T], ...]:
    """The extensions of a group, in the order of their names, each loaded once.

    Parameters
    ----------
    group : one of the groups above.
    kind : what the objects must be; `object` allows everything.

    Returns
    -------
    One `Extension` an entry point, with its `thing` or its `fault`.
    """
    if (group, kind) not in _LOADED:
        found = sorted(entry_points(group), key=lambda entry: (entry.name, entry.value))
        _LOADED[group, kind] = tuple(_extension(entry, kind) for entry in found)
    return _LOADED[group, kind]


def usable(
    group: str, kind: type[T], taken: Collection[str] = ()
) -> tuple[dict[str, T], tuple[Message, ...]]:
    """Objects of a group by name, and what is wrong with the others.

    An object has the name that it says it has (`name`), else that of its entry point. Names that
    are `taken` by our own, and those that two packages claim, are refused.
    """
    things: dict[str, T] = {}
    faults: list[Message] = []
    for one in extensions(group, kind):
        name = str(getattr(one.thing, "name", one.name))
        if one.fault is not None:
            faults.append(one.fault)
        elif name in taken or name in things:
            faults.append(message("note.extension.name-taken", name=name, package=one.package))
        elif one.thing is not None:
            things[name] = one.thing
    return things, tuple(faults)


class Registry(Mapping[str, T]):
    """Things of one kind by name: ours, then those of other packages.

    The others are loaded only when a name is asked for that is not ours, or when all names are.

    Parameters
    ----------
    group : one of the groups above.
    kind : what things are.
    own : gives those that come with kinprint; called once, when they are first needed.
    """

    def __init__(self, group: str, kind: type[T], own: Callable[[], Mapping[str, T]]) -> None:
        self._group, self._kind, self._make = group, kind, own

    @cached_property
    def own(self) -> Mapping[str, T]:
        """Those that come with kinprint."""
        return self._make()

    @property
    def added(self) -> Mapping[str, T]:
        """Those of other packages."""
        return usable(self._group, self._kind, self.own)[0]

    @property
    def faults(self) -> tuple[Message, ...]:
        """Why others cannot be used."""
        return usable(self._group, self._kind, self.own)[1]

    def fault_of(self, name: str) -> Message | None:
        """Why the entry point of that name gave nothing."""
        found = extensions(self._group, self._kind)
        return next((one.fault for one in found if one.name == name), None)

    def __getitem__(self, name: str) -> T:
        if name in self.own:
            return self.own[name]
        return self.added[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self.added

    def __len__(self) -> int:
        return sum(1 for _ in self)


def told(error: BaseException) -> str:
    """An error of somebody else's code in a few words: its class and what it says."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _extension(entry: EntryPoint, kind: type[T]) -> Extension[T]:
    package = _package(entry)
    outcome = _loaded(entry)
    fault: Message | None = None
    if not outcome:
        fault = message(
            "note.extension.slow", name=entry.name, package=package, seconds=LOADING_SECONDS
        )
    elif isinstance(outcome[0], BaseException):
        error = told(outcome[0])
        fault = message("note.extension.failed", name=entry.name, package=package, error=error)
    elif not isinstance(outcome[0], kind):
        fault = message(
            "note.extension.other-kind",
            name=entry.name,
            package=package,
            value=entry.value,
            kind=kind.__name__,
        )
    thing = None if fault is not None else cast("T", outcome[0])
    return Extension(entry.name, entry.value, package, thing, fault)


def _loaded(entry: EntryPoint) -> list[object]:
    """The object that an entry point names, or the error of loading it; nothing in time."""
    outcome: list[object] = []

    def load() -> None:
        try:
            outcome.append(entry.load())
        except BaseException as error:  # also what leaves the interpreter
            outcome.append(error)

    # A thread, since an import that hangs cannot be ended: it is left behind.
    loading = Thread(target=load, name=f"loading {entry.name}", daemon=True)
    loading.start()
    loading.join(LOADING_SECONDS)
    return list(outcome)


def _package(entry: EntryPoint) -> str:
    found = getattr(entry, "dist", None)
    return f"{found.name} {found.version}" if found is not None else entry.value.partition(":")[0]
