"""The index of a model in several files: which tensor lies in which shard.

`model.safetensors.index.json` and `pytorch_model.bin.index.json` have the same form. An
index comes from strangers and its values become paths and addresses, so none of them may
point outside the repository, whatever a file system or a server would make of it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import msgspec
from msgspec import Struct, field

from kinprint import text
from kinprint.errors import BadIndex, FormatError
from kinprint.reader.jsonfile import DuplicateKeyError, quoted, unique_keys
from kinprint.records import Header

INDEX_LIMIT = 100_000_000
"""Longest index that is looked at, in bytes: fifty times the largest one published."""

_PATH_LIMIT = 1024
_LONGEST_NAME = 1024
_MOST_SEGMENTS = 64
_SIZE_LIMIT = 2**63 - 1

# What makes a shard's name point elsewhere, or mean another thing to another reader.
_FORBIDDEN = (
    (r"[\x00-\x1f\x7f]", "cause.index.name.control"),
    (r"\\", "cause.index.name.backslash"),
    (r"^/", "cause.index.name.absolute"),
    (r":", "cause.index.name.colon"),
    (r"%[0-9A-Fa-f]{2}", "cause.index.name.encoded"),
    (r"(^|/)\.\.(/|$)", "cause.index.name.climbs"),
    # Windows drops dots and blanks at the end of a name, which makes ".. ." a "..".
    (r"(^|/)(?!\.(/|$))[. ]+(/|$)", "cause.index.name.dots"),
    (r"//|/$|^$", "cause.index.name.empty-part"),
)


class ShardIndex(Struct, frozen=True):
    """What an index promises: for each tensor the shard that holds it.

    Shards are named by their path within the repository, though the index itself names
    them relative to its own folder. `shards` is the same map the other way round: each
    shard with its tensors, in the order of the index.
    """

    path: str
    weight_map: Mapping[str, str]
    metadata: Mapping[str, object] = field(default_factory=dict)
    shards: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def parse_index(path: str, raw: bytes) -> ShardIndex:
    """Read and check the index at `path`.

    The whole index is refused for one bad entry, because a repository with one hostile
    path deserves no trust in the others.
    """
    content = _content(path, raw)
    names = content.get("weight_map")
    if not isinstance(names, dict):
        _refuse(path, "cause.index.no-map" if names is None else "cause.index.odd-map")
    if not names:
        _refuse(path, "cause.index.empty-map")
    metadata = content.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        _refuse(path, "cause.index.odd-metadata")
    if set(map(type, names.values())) != {str}:
        odd = next(tensor for tensor, shard in names.items() if not isinstance(shard, str))
        _refuse(path, "cause.index.no-file", tensor=quoted(odd))
    check_names(path, names)
    folder = posixpath.dirname(path)
    placed = {shard: _shard_path(path, folder, shard) for shard in set(names.values())}
    grouped: dict[str, list[str]] = {place: [] for place in placed.values()}
    for tensor, shard in names.items():
        grouped[placed[shard]].append(tensor)
    _check_total(path, metadata.get("total_size"))
    moved = any(shard != place for shard, place in placed.items())
    return ShardIndex(
        path,
        {tensor: placed[shard] for tensor, shard in names.items()} if moved else names,
        metadata,
        {place: tuple(tensors) for place, tensors in grouped.items()},
    )


def check_names(path: str, names: Iterable[str]) -> None:
    """Refuse tensors with names that no model has: what reads them may take them apart.

    The longest names of published models have about 150 characters in 15 segments.
    """
    for name in [one for one in names if len(one) >= _MOST_SEGMENTS]:
        if len(name) > _LONGEST_NAME or name.count(".") >= _MOST_SEGMENTS:
            cause = text.message(
                "cause.weights.odd-name",
                file=path,
                name=quoted(name[:40] + "…"),
                characters=_LONGEST_NAME,
                segments=_MOST_SEGMENTS,
            )
            raise FormatError(cause=cause)


class Promises(Struct, frozen=True):
    """How a shard differs from what an index says of it: tensors it lacks, and those beyond."""

    missing: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()


def check_promises(index: ShardIndex, shard: str, header: Header) -> Promises:
    """What `index` names for `shard` and is not there, and what is there and not named.

    Neither keeps anybody from reading the rest: a head that is the embedding is often named and
    not stored. A caller notes both.
    """
    held = {tensor.name for tensor in header.tensors}
    promised = index.shards.get(shard, ())
    if len(held) == len(promised) and held.issuperset(promised):
        return Promises()
    known = set(promised)
    return Promises(
        tuple(name for name in promised if name not in held),
        tuple(tensor.name for tensor in header.tensors if tensor.name not in known),
    )


def _refuse(path: str, key: str, /, **fields: object) -> NoReturn:
    raise BadIndex(file=path, cause=text.message(key, **fields))


class _QuickIndex(msgspec.Struct):
    weight_map: dict[str, str]
    metadata: dict[str, str | int | float]


_quick_index = msgspec.json.Decoder(_QuickIndex)


def _quick_content(raw: bytes) -> dict[str, Any] | None:
    """What a sound index of the ordinary kind holds, else None, as for headers of safetensors.

    Every key is followed by a colon: as many as there are keys, and in strings, leave no room
    for a key that stands twice or is unknown.
    """
    if b"\\" in raw:
        return None
    try:
        found = _quick_index.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    names, metadata = found.weight_map, found.metadata
    beyond = raw.count(b":") - (2 + len(names) + len(metadata))
    said = [*metadata, *filter(lambda one: isinstance(one, str), metadata.values())]
    if beyond and beyond != "".join((*names, *names.values(), *map(str, said))).count(":"):
        return None
    return {"weight_map": names, "metadata": metadata}


def _content(path: str, raw: bytes) -> dict[str, Any]:
    if len(raw) > INDEX_LIMIT:
        _refuse(path, "cause.index.too-long", size=len(raw), most=INDEX_LIMIT)
    try:
        decoded = raw.decode("utf-8")
        if (quick := _quick_content(raw)) is not None:
            return quick
        content = json.loads(decoded, object_pairs_hook=unique_keys)
        if b"\\u" in raw:
            # An escaped half of a character is let pass by json, but nothing can be named by it.
            json.dumps(content, ensure_ascii=False).encode("utf-8")
    except DuplicateKeyError as error:
        _refuse(path, "cause.json.twice", name=quoted(str(error)))
    except RecursionError:
        _refuse(path, "cause.json.too-deep")
    except UnicodeError:
        _refuse(path, "cause.json.not-utf8")
    except ValueError as error:
        _refuse(path, "cause.json.not-json", detail=str(error)[:120])
    if not isinstance(content, dict):
        _refuse(path, "cause.json.no-object")
    return content


def _shard_path(path: str, folder: str, shard: str) -> str:
    """Path of a shard within the repository, or a refusal if it leads anywhere else."""
    for pattern, fault in _FORBIDDEN:
        if re.search(pattern, shard):
            _refuse(path, fault, name=quoted(shard))
    if len(shard) > _PATH_LIMIT:
        _refuse(path, "cause.index.name.too-long", name=quoted(shard), length=len(shard))
    within = "/".join(part for part in shard.split("/") if part != ".")
    if not within:
        _refuse(path, "cause.index.name.no-file", name=quoted(shard))
    return posixpath.join(folder, within)


def _check_total(path: str, found: object) -> None:
    """Refuse a total size that no file can have; nothing else is made of it."""
    if found is None:
        return
    # Writers that count four-bit weights as half a byte each leave a floating-point number.
    if isinstance(found, bool) or not isinstance(found, int | float):
        _refuse(path, "cause.index.odd-total")
    if not 0 <= found <= _SIZE_LIMIT:  # which is not true of NaN either
        _refuse(path, "cause.index.impossible-total")
