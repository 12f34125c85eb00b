"""What models say about themselves: state, files, formats, tokenizer, claims of origin.

Facts come from the listing and from headers that are read anyway. A card's first kilobytes and
the list of commits are read in the background while headers come in, and may fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kinprint.errors import KinprintError
from kinprint.lineage.about.claims import (
    CARD,
    RECIPE,
    Claim,
    adapter_claims,
    card_claims,
    config_claims,
    gguf_claims,
    recipe_claims,
)
from kinprint.model.geometry import geometry_of
from kinprint.model.model import Model
from kinprint.model.opening import config_beside
from kinprint.model.tokens import Vocabulary, align, choose_vocabulary, has_vocabulary
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.fetch import Want
from kinprint.reader.formats.registry import GGUF
from kinprint.reader.jsonfile import parse_object
from kinprint.records import ByteRange, FileEntry
from kinprint.text import Message
from kinprint.workers import Threads

CARD_HEAD = 8 * 1024
"""Bytes of a card that are read: lineage stands in its first lines."""
_CARD_SHARE = 50  # a card may cost this part of a budget, not more
_ADAPTER_CONFIG = 64 * 1024
_DIGESTS = 256  # weight files that are listed by name
_PAGE = 50  # commits that the Hub lists at once; a full page may not reach the first one


class TokenizerFile(Struct, frozen=True):
    """A tokenizer as the listing has it; `kind` and `tokens` where more is known."""

    file: str
    kind: str = ""
    tokens: int | None = None
    bytes: int | None = None
    sha256: str | None = None


class CommonTokens(Struct, frozen=True):
    """Tokens of two vocabularies, those that both have, and those with one number in both."""

    a: int
    b: int
    common: int
    same_ids: int


class Background(Struct, frozen=True):
    """What is read while weights come in: claims of small files, and dates of commits.

    Attributes
    ----------
    claims
        Models that the card or a recipe names as origin.
    adapter
        Models that an adapter's configuration beside the weights names.
    published
        When the first commit was made, if the host's list reaches it.
    changed
        When the commit that is read was made.
    digests
        The sha256 of each weight file that is listed; None where it is not known.
    complete
        Whether all of it could be read, and the host told when the commit was made.
    """

    claims: tuple[Claim, ...] = ()
    adapter: tuple[Claim, ...] = ()
    published: str | None = None
    changed: str | None = None
    digests: tuple[str | None, ...] = ()
    complete: bool = False


class Description(Struct, frozen=True):
    """A model as it presents itself.

    Attributes
    ----------
    published, changed
        When the first commit was made, and the one that was read.
    architecture
        The name of its architecture.
    formats
        Formats of stored numbers, those of most numbers first.
    files, bytes
        How many weight files there are, and how long they are together.
    digests
        The first of them.
    tokenizer
        The file that holds its vocabulary.
    claims
        Models that it names as its origin.
    complete
        Whether all that it says of itself could be read, so that asking again would tell no more.
    """

    published: str | None = None
    changed: str | None = None
    architecture: str | None = None
    formats: tuple[str | Message, ...] = ()
    files: int = 0
    bytes: int = 0
    digests: tuple[FileEntry, ...] = ()
    tokenizer: TokenizerFile | None = None
    claims: tuple[Claim, ...] = ()
    complete: bool = False


def card_bytes(checkpoints: Sequence[Checkpoint]) -> int:
    """What reading cards and recipes will cost, the same wherever the models lie."""
    files = [one.files[path] for one in checkpoints for path in (CARD, RECIPE) if path in one.files]
    return sum(min(file.size, CARD_HEAD) for file in files)


@contextmanager
def reading_backgrounds(
    checkpoints: Sequence[Checkpoint], budget: int | None, hashes: bool
) -> Iterator[list[Future[Background]]]:
    """Read what models say about themselves while the caller reads their weights.

    With `hashes`, weight files on this machine are hashed, which reads them whole; not so where
    there is a budget.
    """
    hashes = hashes and budget is None
    cards = budget is None or card_bytes(checkpoints) * _CARD_SHARE <= budget
    pool = Threads(min(16, max(len(checkpoints), 1)), "kinprint-background")
    try:
        yield [pool.submit(_background, checkpoint, cards, hashes) for checkpoint in checkpoints]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def describe(
    checkpoint: Checkpoint,
    model: Model | None,
    vocabulary: Vocabulary | None,
    background: Future[Background],
) -> Description:
    """All that is known of a model; `model` is None where no header was read."""
    shards = _shards(checkpoint)
    metadata = None if model is None else model.metadata
    sizes = geometry_of(checkpoint.config, metadata)
    read = background.result()
    # A merged model may keep the configuration of what was merged into it, and is no adapter.
    merged = model is None or model.adapter_checkpoint is None
    adapter = [replace(one, relation="") if merged else one for one in read.adapter]
    return Description(
        published=read.published,
        changed=read.changed,
        architecture=sizes.architecture or sizes.family,
        formats=() if model is None else _formats(model),
        files=len(shards),
        bytes=sum(entry.size for entry in shards),
        digests=tuple(
            replace(entry, sha256=digest)
            for entry, digest in zip(shards[:_DIGESTS], read.digests, strict=True)
        ),
        tokenizer=_tokenizer(checkpoint, metadata, vocabulary, sizes.vocabulary),
        claims=(*read.claims, *adapter, *_own_claims(checkpoint, metadata)),
        complete=read.complete,
    )


def common_tokens(a: Vocabulary | None, b: Vocabulary | None) -> CommonTokens | None:
    """How many tokens two vocabularies share; None unless both were read."""
    if a is None or b is None:
        return None
    if a is b:  # files with the same content are read as one vocabulary
        return CommonTokens(a.used, a.used, a.used, a.used)
    pairs = align(a, b)
    return CommonTokens(a.used, b.used, pairs.shared, int((pairs.a == pairs.b).sum()))


def _shards(checkpoint: Checkpoint) -> list[FileEntry]:
    return [checkpoint.files[shard] for shard in checkpoint.shards]


def _background(checkpoint: Checkpoint, cards: bool, hashes: bool) -> Background:
    path = config_beside(checkpoint)
    if path is not None and checkpoint.files[path].size > _ADAPTER_CONFIG:
        path = None
    most = {CARD: CARD_HEAD, RECIPE: CARD_HEAD} if cards else {}
    most |= {} if path is None else {path: _ADAPTER_CONFIG}
    raw = {name: first_bytes(checkpoint, name, limit) for name, limit in most.items()}
    claims = [*card_claims(raw.get(CARD, b"")), *recipe_claims(raw.get(RECIPE, b""))]
    adapter: list[Claim] = []
    if path is not None:
        with suppress(KinprintError):
            adapter += adapter_claims(parse_object(path, raw[path]), path)
    published, changed = commit_dates(checkpoint)
    lost = any(not raw[name] for name in most if _length(checkpoint, name))
    listed = _shards(checkpoint)[:_DIGESTS]
    digests = [checkpoint.fetcher.digest(one) if hashes else one.sha256 for one in listed]
    return Background(
        tuple(claims),
        tuple(adapter),
        published,
        changed,
        tuple(digests),
        complete=cards and not lost and changed is not None,
    )


def _length(checkpoint: Checkpoint, path: str) -> int:
    entry = checkpoint.files.get(path)
    return 0 if entry is None else entry.size


def first_bytes(checkpoint: Checkpoint, path: str, most: int) -> bytes:
    """The first bytes of a small file; empty where it is not there or cannot be read."""
    entry = checkpoint.files.get(path)
    if entry is None or not entry.size:
        return b""
    span = ByteRange(0, min(entry.size, most))
    with suppress(KinprintError):
        checkpoint.fetcher.ensure([Want(checkpoint.source, entry, (span,))])
        return checkpoint.fetcher.take(checkpoint.source, entry, span)
    return b""


def commit_dates(checkpoint: Checkpoint) -> tuple[str | None, str | None]:
    """When the first commit was made and when the one that was read, as the host says."""
    with suppress(KinprintError):
        history = checkpoint.source.history()
        if history:
            first = history[-1].date if len(history) < _PAGE else ""
            return first or None, history[0].date or None
    return None, None


def _own_claims(checkpoint: Checkpoint, metadata: Mapping[str, object] | None) -> list[Claim]:
    """Claims in what was read anyway: the configuration, a GGUF header."""
    ref = checkpoint.ref
    own = (ref.name, ref.given, ref.name.rpartition("/")[2])
    claims = config_claims(checkpoint.config, own, "config.json")
    if metadata is not None and checkpoint.format == GGUF:
        claims += gguf_claims(metadata, checkpoint.shards[0])
    return claims


def _formats(model: Model) -> tuple[str | Message, ...]:
    """Formats of stored numbers, those of most numbers first; quantised ones in words."""
    counts: Counter[str | Message] = Counter()
    for weight in model.weights.values():
        quantised = weight.quantised
        counts[weight.spec.dtype if quantised is None else quantised.summary] += weight.spec.count
    return tuple(sorted(counts, key=lambda name: (-counts[name], str(name))))


def _tokenizer(
    checkpoint: Checkpoint,
    metadata: Mapping[str, object] | None,
    vocabulary: Vocabulary | None,
    stated_size: int | None,
) -> TokenizerFile | None:
    choice = choose_vocabulary(checkpoint.files.values(), checkpoint.choice.weights.label)
    if choice is None:
        return None
    if choice.in_header and metadata is not None and not has_vocabulary(metadata):
        return None
    known: dict[str, Any] = {"tokens": stated_size}
    if vocabulary is not None:
        known = {"tokens": vocabulary.used, "kind": vocabulary.algorithm or vocabulary.kind}
    entry = None if choice.in_header else checkpoint.files[choice.path]
    if entry is not None:
        known |= {"bytes": entry.size, "sha256": entry.sha256}
    return TokenizerFile(choice.path, **known)
