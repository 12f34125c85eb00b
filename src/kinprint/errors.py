"""Everything that can go wrong, as a tree; every message says what to do next.

    KinprintError                 exit code 2
    ├── UsageError                the command cannot be understood
    │   ├── BadReference          a model name that names nothing
    │   ├── BadOption             an option with a value that makes no sense
    │   ├── MissingExtra          an optional part is not installed
    │   └── MissingLibrary        a library that kinprint can work with is not installed
    ├── SourceError               the bytes cannot be had
    │   ├── RepositoryMissing  RevisionMissing  FileMissing  NoWeights
    │   ├── RepositoryGated  RepositoryPrivate  AccessRefused
    │   ├── OfflineMiss           offline mode, and not in the cache
    │   ├── NotRecorded           not among the bytes of a fingerprint
    │   └── NetworkError
    │       ├── NotAHub  Unreachable  RateLimited  ServerFailed  BodyBroken  TooSlow
    │       └── RangeIgnored  RangeRefused  LengthWrong  FileChanged
    ├── FormatError               the bytes are not what they claim to be
    │   ├── BadHeader  BadIndex  BadPickle  BadGguf  BadArchive  BadConfig
    │   ├── BadQuantisation  BadTokenizer  BadAdapter
    │   └── PartsMissing  TensorMissing  TensorUnknown  DtypeUnknown  SliceOutside
    ├── BudgetExceeded            reading would cost more than allowed
    ├── CacheError
    │   └── DiskFull  CacheBroken
    ├── AtlasError                an atlas cannot be used
    │   └── AtlasBroken  AtlasFull  EntryBroken
    ├── ClusterError              work cannot be done elsewhere
    │   └── ClusterUnreachable  ClusterLost  ClusterUnfit  WorkerDied
    ├── SystemFailed              the operating system refused something else
    └── InternalError             kinprint itself failed, in a way that nobody foresaw

Errors carry fields; the catalogues in `text/` have a sentence for each class, under the key
`error.` and its name. Code raises `BadHeader(file=…, cause=message("cause.…"))` and writes no
prose of its own. A field called `option` is the name of a parameter, as Python spells it; the
command line shows it as its own option (see `spelled`).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, ParamSpec, Self, TypeVar

from kinprint import text

_P = ParamSpec("_P")
_T = TypeVar("_T")
# Parameters that are no option of the same name; names in capitals are left as they are.
_NAMES = {
    "a": "MODEL",
    "cache=False": "--no-cache",
    "controls": "--control",
    "faults": "--fault",
    "file": "RESULT.json",
    "folder": "FOLDER",
    "models": "MODEL",
    "name": "NAME",
    "paths": "-o",
}


class KinprintError(Exception):
    """Base of the tree: a failure that a user can understand and act on."""

    exit_code: ClassVar[int] = 2
    option: ClassVar[str] = ""
    """The parameter that the sentence of every error of a class names, if it names one."""

    def __init__(self, **fields: object) -> None:
        expected = self.field_names()
        if self.option:
            fields = {"option": self.option, **fields}
        if set(fields) != expected:
            raise TypeError(f"{type(self).__name__} takes {sorted(expected)}, got {sorted(fields)}")
        self.fields = fields
        super().__init__(self.sentence("en"))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.fields))

    @classmethod
    def field_names(cls) -> frozenset[str]:
        """Names of the fields this error's sentence speaks of."""
        return text.field_names(f"error.{cls.__name__}")

    @property
    def message(self) -> text.Message:
        """The sentence, to be said later: for a failure that is noted and does not end the work."""
        return text.Message(f"error.{type(self).__name__}", _clean(self.fields))

    @property
    def cause(self) -> text.Message:
        """Why it happened, without the sentence around it."""
        given = _clean(self.fields)["cause"]
        return (
            given if isinstance(given, text.Message) else text.message("cause.other", cause=given)
        )

    def sentence(self, language: str) -> str:
        """Say in `language` what happened, what it means and what to do."""
        shown = {name: printable(_said(value, language)) for name, value in self.fields.items()}
        return text.say(f"error.{type(self).__name__}", language, **shown)

    def spelled(self, spell: Callable[[str], str]) -> Self:
        """The same error with names of parameters as another surface spells them."""
        again = type(self)(**{key: _spelled(key, one, spell) for key, one in self.fields.items()})
        again.__dict__.update({**self.__dict__, "fields": again.fields})
        again.__cause__ = self.__cause__
        return again.with_traceback(self.__traceback__)


def option_name(parameter: str) -> str:
    """How the command line calls a parameter of the library.

    Documents call it so too, since they are read where nobody knows how they were asked for.
    """
    if parameter in _NAMES:
        return _NAMES[parameter]
    return (
        f"--{parameter.replace('_', '-')}"
        if parameter.isidentifier() and parameter.islower()
        else parameter
    )


def _spelled(key: str, value: object, spell: Callable[[str], str]) -> object:
    if isinstance(value, text.Message):
        inner = {name: _spelled(name, one, spell) for name, one in value.fields.items()}
        return text.message(value.key, **inner)
    if isinstance(value, KinprintError):
        return value.spelled(spell)
    return spell(value) if key == "option" and isinstance(value, str) else value


def _said(value: object, language: str) -> str:
    if isinstance(value, KinprintError):
        return value.sentence(language)
    return value.say(language) if isinstance(value, text.Message) else str(value)


def _clean(fields: Mapping[str, object]) -> dict[str, object]:
    """Fields with every text of strangers made printable, in the messages among them too."""
    cleaned: dict[str, object] = {}
    for name, value in fields.items():
        if isinstance(value, KinprintError):
            cleaned[name] = value.message
        elif isinstance(value, text.Message):
            cleaned[name] = text.Message(value.key, _clean(value.fields))
        else:
            cleaned[name] = printable(value) if isinstance(value, str) else value
    return cleaned


def printable(given: str, longest: int = 300) -> str:
    """Text from strangers as it may be shown: no control codes, no tricks, not endless."""
    cut = given if len(given) <= longest else given[: longest - 1] + "…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut)


def system_cause(error: OSError) -> text.Message | str:
    """What the operating system said, as a cause; in its own words where we have none."""
    key = f"cause.system.{errno.errorcode.get(error.errno or 0, '')}"
    return text.message(key) if text.knows(key) else error.strerror or str(error)


class Malformed(ValueError):
    """Something wrong with bytes that are being read, raised where no file is known yet.

    Whoever knows the file raises an error of the tree with this `cause`.
    """

    def __init__(self, key: str, /, **fields: object) -> None:
        super().__init__(key)
        self.cause = text.message(key, **fields)

    def __str__(self) -> str:
        return str(self.cause)


def _rebuild(cls: type[KinprintError], fields: dict[str, object]) -> KinprintError:
    return cls(**fields)


class UsageError(KinprintError):
    """The command cannot be understood."""


class BadReference(UsageError):
    """A model name that names nothing kinprint knows how to open."""


class BadOption(UsageError):
    """An option was given a value that makes no sense."""


class MissingExtra(UsageError):
    """A part that is installed on demand is not installed."""


class MissingLibrary(UsageError):
    """A library that kinprint can hand results to is not installed."""


class SourceError(KinprintError):
    """The bytes cannot be had."""


class RepositoryMissing(SourceError):
    """No such repository, or a private one that this token does not open."""


class RevisionMissing(SourceError):
    """The repository exists, the revision does not."""


class FileMissing(SourceError):
    """The repository or folder has no such file."""


class NoWeights(SourceError):
    """The source has files, but none that holds tensors kinprint can read."""


class RepositoryGated(SourceError):
    """The repository exists and asks for consent that was not given."""


class RepositoryPrivate(SourceError):
    """The repository answered that this token may not read it."""


class AccessRefused(SourceError):
    """A server or the file system refused to hand out a file."""


class OfflineMiss(SourceError):
    """Offline mode is on and the cache does not hold what is needed."""


class NotRecorded(SourceError):
    """A fingerprint is asked for bytes that were not read when it was made."""


class NetworkError(SourceError):
    """The network or a server failed, after all retries."""


class NotAHub(NetworkError):
    """The endpoint answers, but not as a Hub does."""


class Unreachable(NetworkError):
    """No connection could be made or kept."""


class RateLimited(NetworkError):
    """The server asks to come back later, again and again."""


class ServerFailed(NetworkError):
    """The server answered with an error of its own."""


class BodyBroken(NetworkError):
    """The answer stopped before its end."""


class TooSlow(NetworkError):
    """The answer came so slowly that it was given up."""


class RangeIgnored(NetworkError):
    """The server would send the whole file instead of the range asked for."""


class RangeRefused(NetworkError):
    """The server says the range lies outside the file."""


class LengthWrong(NetworkError):
    """The server sent another range or length than the one asked for."""


class FileChanged(NetworkError):
    """The file is not the one that was listed when the run began."""


class FormatError(KinprintError):
    """The bytes are not what they claim to be."""


class BadHeader(FormatError):
    """A safetensors header breaks the format's rules."""


class BadIndex(FormatError):
    """A shard index is malformed or points where it may not."""


class BadPickle(FormatError):
    """A pickle asks for something outside the allow-list, or is malformed."""


class BadGguf(FormatError):
    """A GGUF file breaks the format's rules."""


class BadArchive(FormatError):
    """A PyTorch archive is no archive, or is damaged."""


class BadConfig(FormatError):
    """A configuration file cannot be read as JSON."""


class BadQuantisation(FormatError):
    """Quantised weights whose parts contradict each other, or a scheme that is not read."""


class BadTokenizer(FormatError):
    """A tokenizer file that cannot be understood."""


class BadAdapter(FormatError):
    """An adapter that cannot be merged into its base."""


class PartsMissing(FormatError):
    """Weights in several files, and some of them are not there."""


class TensorMissing(FormatError):
    """A tensor was promised by an index and is not there."""


class TensorUnknown(FormatError):
    """A tensor was asked for that the model does not have."""


class DtypeUnknown(FormatError):
    """A number format that kinprint does not know."""


class SliceOutside(FormatError):
    """A slice reaches beyond its tensor."""


class BudgetExceeded(KinprintError):
    """Reading would cost more than the budget allows."""

    option = "budget"


class CacheError(KinprintError):
    """The cache folder cannot be used."""


class DiskFull(CacheError):
    """There is no room left to store what was read."""

    option = "cache=False"


class CacheBroken(CacheError):
    """The cache folder cannot be read or written."""

    option = "cache=False"


class AtlasError(KinprintError):
    """An atlas cannot be used."""


class AtlasBroken(AtlasError):
    """The place of an atlas cannot be read or written."""


class AtlasFull(AtlasError):
    """There is no room left for a fingerprint."""


class EntryBroken(AtlasError):
    """A fingerprint of an atlas is damaged, of an unknown form, or another than its name says."""


class ClusterError(KinprintError):
    """Work cannot be done in other processes or on other machines."""


class ClusterUnreachable(ClusterError):
    """No scheduler answers."""

    option = "cluster"


class ClusterLost(ClusterError):
    """A cluster was there, and is not any more."""


class ClusterUnfit(ClusterError):
    """A cluster lacks what the work needs."""


class WorkerDied(ClusterError):
    """Whichever process worked on something died."""

    option = "jobs"


class SystemFailed(KinprintError):
    """The operating system refused something that has no error of its own here."""

    @classmethod
    def of(cls, error: OSError) -> SystemFailed:
        """What the system said, and of which file."""
        if error.filename is None:
            return cls(cause=system_cause(error))
        named = {"cause": system_cause(error), "file": str(error.filename)}
        return cls(cause=text.message("cause.system-file", **named))


class InternalError(KinprintError):
    """kinprint itself failed, in a way that nobody foresaw: a fault of ours, to be reported.

    `trace` is the traceback as text, which survives a way from one process to another.
    """

    trace: str = ""

    @classmethod
    def of(cls, error: BaseException) -> InternalError:
        """An error of any kind as one of ours, with its traceback."""
        import traceback

        told = f"{type(error).__name__}: {error}".removesuffix(": ")
        found = cls(cause=told)
        found.trace = "".join(traceback.format_exception(error))
        found.__cause__ = error
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.fields), {"trace": self.trace})


_CONCERNS_ALL = (BadOption, BudgetExceeded, CacheError, AtlasBroken, AtlasFull)
"""What no single model has brought about: trying the others would fail in the same way."""


@contextmanager
def naming(model: str) -> Iterator[None]:
    """Note on an error which of several models it is about."""
    try:
        yield
    except KinprintError as error:
        if not getattr(error, "__notes__", ()):
            error.add_note(model)
        raise


def attempt(
    action: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs
) -> _T | KinprintError:
    """What an action on one model or one pair gives, or the error that ended it.

    An error that nobody foresaw is one of those. Budgets, full disks and options that make no
    sense concern all models, so they are raised.
    """
    try:
        return action(*arguments, **named)
    except _CONCERNS_ALL:
        raise
    except KinprintError as error:
        return error
    except OSError as error:
        return SystemFailed.of(error)
    except Exception as error:
        return InternalError.of(error)
