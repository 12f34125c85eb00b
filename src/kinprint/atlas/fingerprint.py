"""What is kept of a model: all bytes that a comparison at level standard reads of it.

What is read of a model depends on it, on level and seed, and never on its partner. So the bytes
that were read once stand for the model in every comparison at that level: two fingerprints give
the verdict of the files, test by test, because the same code reads the same bytes. The exception
are models whose tensors have names that nobody knows, beside models whose names are known: what is
read of the latter is then chosen by the pair (`lineage/contents.py`), and a fingerprint says that
it does not hold it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kinprint.atlas.keys import TowerKeys, keys_of
from kinprint.lineage.about.claims import Claim
from kinprint.lineage.about.description import describe, reading_backgrounds
from kinprint.lineage.compare import algebra_for
from kinprint.lineage.contents import same_contents
from kinprint.lineage.identity import digest_of
from kinprint.lineage.opening import open_all, read_headers, sampler_of
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.results import Settings
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import FileEntry, Level, ModelRef
from kinprint.source.recorded import Recorded, RecordedSource

LEVEL = Level.STANDARD
"""What a fingerprint holds is what this level reads."""


class Fingerprint(Struct, frozen=True):
    """A model as an atlas keeps it.

    Attributes
    ----------
    seed
        Chose which rows were read; only fingerprints of one seed can be compared.
    architecture
        What the model calls its architecture.
    config, tokenizer
        Digests of these files, empty where there are none or they were not read.
    claims
        Models that it names as its origin: declared, not measured.
    towers
        What each tower is searched by.
    sources
        What was read: the model, and after it the base of an adapter.
    """

    seed: int
    architecture: str
    config: str
    tokenizer: str
    claims: tuple[Claim, ...]
    towers: tuple[TowerKeys, ...]
    sources: tuple[Recorded, ...]

    @property
    def ref(self) -> ModelRef:
        """Which model it is, and which state of it was read."""
        return self.sources[0].ref

    @property
    def bytes(self) -> int:
        """How many bytes of files it holds."""
        return sum(
            len(piece.data)
            for source in self.sources
            for pieces in source.pieces.values()
            for piece in pieces
        )


def fingerprint(
    given: str, fetcher: Fetcher, seed: int = 0, base: str | None = None
) -> Fingerprint:
    """Read a model as a comparison does, to the last stage, and keep what was read.

    Parameters
    ----------
    given
        The model.
    fetcher
        Reads, within its budget.
    seed
        Chooses which rows are read.
    base
        What an adapter stands on, where it does not say.
    """
    settings = Settings(LEVEL, seed=seed, base=base)
    with fetcher.recording() as recorder:
        (checkpoint,) = open_all([given], fetcher, settings)
        with reading_backgrounds([checkpoint], None, hashes=False) as (started,):
            (model,) = read_headers([checkpoint], settings)
            sampler = sampler_of([model], settings)
            with algebra_for(LEVEL):
                (towers,) = sampler.towers(sampler.stages - 1)
                if all(sampler.whole):
                    sampler.covered(0)
                if not any(map(_testable, towers)):
                    same_contents(model, model, settings.alpha)
                keys = tuple(map(keys_of, towers))
            about = describe(checkpoint, model, sampler.vocabularies[0], started)
    main, *others = recorder.recorded()
    main = replace(main, files=tuple(_hashed(checkpoint, main)))
    tokenizer = "" if about.tokenizer is None else _digest(main, about.tokenizer.file)
    return Fingerprint(
        seed=seed,
        architecture=about.architecture or "",
        config=_digest(main, "config.json"),
        tokenizer=tokenizer,
        claims=about.claims,
        towers=keys,
        sources=(main, *others),
    )


def replay(fetcher: Fetcher, named: Iterable[tuple[str, Fingerprint]]) -> None:
    """Let names open fingerprints in place of models, and bases what was read of them."""
    for name, one in named:
        main, *others = one.sources
        fetcher.replay({name: RecordedSource(main)})
        fetcher.replay({other.given: RecordedSource(other) for other in others})


def _testable(sample: Sample) -> bool:
    return bool(sample.norms or sample.units or sample.attention or sample.experts)


def _hashed(checkpoint: Checkpoint, recorded: Recorded) -> Iterable[FileEntry]:
    """Files with the digests by which a comparison knows equal ones."""
    weights = set(checkpoint.shards)
    for component in checkpoint.components:
        weights |= set(component.shards)
    for file in recorded.files:
        known = digest_of(file) if file.path in weights else file.sha256
        yield replace(file, sha256=known or None, local=None, key=None)


def _digest(recorded: Recorded, path: str) -> str:
    """The sha256 of a file that was read whole, or as its source tells it."""
    file = next((one for one in recorded.files if one.path == path), None)
    if file is None:
        return ""
    pieces = recorded.pieces.get(path, ())
    if len(pieces) == 1 and len(pieces[0].data) == file.size:
        return sha256(pieces[0].data).hexdigest()
    return file.sha256 or ""


def pinned_name(ref: ModelRef) -> str:
    """A name that opens the state that was read, where states have names.

    A folder is opened as one: its name is never that of a repository.
    """
    if ref.kind == "hub":
        return f"{ref.name}@{ref.commit}" + (f"/{ref.path}" if ref.path else "")
    if ref.kind != "local" or _is_rooted(ref.given):
        return ref.given
    return str(Path(ref.given.strip()).absolute())


def folder_of(ref: ModelRef) -> Path:
    """Where a model on this machine lies."""
    return Path(ref.name if _is_rooted(ref.given) else pinned_name(ref)).resolve()


def _is_rooted(given: str) -> bool:
    """Whether a name opens a folder from anywhere, though it does not begin with its root."""
    return given.strip().lower().startswith(("~", "file:"))


def located(one: Fingerprint) -> Fingerprint:
    """The same for an atlas, which is read from other folders: of a folder it knows where it lies.

    The name of the model stays as it was.
    """
    if one.ref.kind != "local":
        return one
    main, *others = one.sources
    ref = replace(main.ref, given=pinned_name(main.ref))
    return replace(one, sources=(replace(main, ref=ref), *others))
