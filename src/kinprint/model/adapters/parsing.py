"""An adapter as its own files describe it: the base it names, its method, what it changes.

No base is needed for this, so that an adapter can be looked at alone; which weights of a
base are meant, and in which shape, is decided in `matching.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kinprint.errors import BadAdapter, KinprintError
from kinprint.model.adapters.naming import GGUF, MLX, Spelled, spelled, table
from kinprint.model.model import ADAPTER_CONFIG
from kinprint.model.quantised.codes import FLOATS
from kinprint.records import TensorSpec
from kinprint.text import Message, message

# What PEFT takes where a configuration says nothing.
_USUAL_ALPHA = 8

# What a pattern may hold: PEFT takes keys for regular expressions, and one from a stranger
# could keep the machine busy for ever. Names need no repeated groups and few repetitions.
_PLAIN = re.compile(r"[\w.\-]+")
_HARMLESS = re.compile(r"[\w.\-\\^$|()\[\]*+?]{1,200}")
_REPEATED = re.compile(r"[*+?]")
_REPEATED_GROUP = re.compile(r"\)[*+?]")
_MOST_REPEATS = 2
_LONGEST_NAME = 200


class Scaling(Struct, frozen=True):
    """The number before an update: fixed, or from alpha and the rank of each weight."""

    alpha: float | None = None
    root: bool = False
    fixed: float | None = None
    smooth: float = 0.0

    def of(self, rank: int) -> float:
        """The scale of an update of that rank; alpha not stated means the rank itself."""
        if self.fixed is not None:
            return self.fixed
        if self.alpha is None or rank < 1:
            return 1.0
        return self.alpha / (math.sqrt(rank) if self.root else rank + self.smooth)


class Piece(Struct, frozen=True):
    """Tensors that change one weight together, by their part in it.

    `target` is a module, or a tensor where `whole`, as the adapter spells it.
    """

    target: str
    parts: Mapping[str, TensorSpec]
    scaling: Scaling
    style: str
    depth: int = 0
    whole: bool = False


class Adapter(Struct, frozen=True):
    """What an adapter's configuration and headers tell, before any base is known.

    `base` and `revision` are what it declares, shown and never trusted. `method` is the
    library's word, `summary` a description for people. `ranks` are the ranks that occur.
    `parameters` are the names that it targets below modules; `tokens` the rows of
    embeddings that it replaces, by module ("" for any); `version` that of PEFT.
    """

    base: str | None
    revision: str | None
    method: str
    summary: Message
    ranks: tuple[int, ...]
    pieces: tuple[Piece, ...]
    fan_in_fan_out: bool = False
    parameters: tuple[str, ...] = ()
    tokens: Mapping[str, tuple[int, ...]] | None = None
    version: tuple[int, ...] = ()


def refused(file: str, key: str, /, **fields: object) -> KinprintError:
    """The refusal of an adapter that contradicts itself or cannot be merged."""
    return BadAdapter(file=file, cause=message(key, **fields))


def parse_adapter(config: Mapping[str, Any], specs: Mapping[str, TensorSpec]) -> Adapter:
    """Read an adapter's configuration (or its GGUF metadata) and headers.

    Raises where the method is one that cannot be merged row by row: rows without it would
    be those of the base, and the comparison would say so without a sign of it.
    """
    method = _method(config)
    groups: dict[tuple[str, int], dict[str, TensorSpec]] = {}
    firsts: dict[tuple[str, int], Spelled] = {}
    for name, spec in specs.items():
        found = spelled(name, specs.keys())
        if found is None:
            continue
        _check_method(spec, name)
        key = (found.target, found.depth if not found.whole else 0)
        parts = groups.setdefault(key, {})
        if found.part in parts:
            other = parts[found.part].name
            raise refused(spec.file, "cause.adapter.same-part", first=name, second=other)
        parts[found.part] = spec
        firsts.setdefault(key, found)
    pieces = tuple(
        Piece(
            found.target, groups[key], _scaling(config, method, found), found.style, *_tail(found)
        )
        for key, found in firsts.items()
    )
    base, revision = _base(config)
    parameters = _strings(config.get("target_parameters"))
    ranks = _ranks(config, pieces, bool(parameters))
    return Adapter(
        base,
        revision,
        method,
        _summary(config, method, ranks, pieces),
        ranks,
        pieces,
        config.get("fan_in_fan_out") is True,
        parameters,
        _tokens(config),
        _version(config),
    )


def _tail(found: Spelled) -> tuple[int, bool]:
    return found.depth, found.whole


def _method(config: Mapping[str, Any]) -> str:
    """PEFT's word for the method; raises for those that are not merged."""
    tables = table()
    stated = config.get("peft_type") or config.get("adapter.type") or config.get("fine_tune_type")
    method = str(stated or "lora").upper()
    if method in ("DORA", "FULL"):  # MLX's words
        return method
    if method in tables["refused"]["methods"]:
        raise refused(ADAPTER_CONFIG, f"cause.adapter.refused.{method}")
    if method not in tables["merged"]["methods"]:
        raise refused(ADAPTER_CONFIG, "cause.adapter.unknown-method", method=stated)
    for key, variant in tables["variants"].items():
        if config.get(key):
            raise refused(ADAPTER_CONFIG, f"cause.adapter.variant.{variant}")
    start = config.get("init_lora_weights")
    for word, name in tables["moved"].items():
        if isinstance(start, str) and start.lower().startswith(word):
            raise refused(ADAPTER_CONFIG, "cause.adapter.moved", name=name)
    return method


def _check_method(spec: TensorSpec, name: str) -> None:
    """Refuse tensors of methods that are not merged, and numbers that are no floats."""
    for place, segment in enumerate(name.split(".")):
        for start, method in table()["foreign"].items():
            if segment.startswith(start):
                foreign = message(f"note.adapter.foreign.{method}")
                raise refused(spec.file, "cause.adapter.foreign", tensor=name, method=foreign)
        if place and segment.startswith("lora_") and segment not in table()["markers"]:
            raise refused(spec.file, "cause.adapter.unknown-part", tensor=name)
    if spec.dtype not in FLOATS and spec.dtype[:1] in "IUB" and not spec.dtype.startswith("IQ"):
        raise refused(spec.file, "cause.adapter.no-weight", tensor=name, dtype=spec.dtype)


def _scaling(config: Mapping[str, Any], method: str, found: Spelled) -> Scaling:
    if found.style == MLX:
        inner = config.get("lora_parameters")
        options: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
        scale = _number(options.get("scale"), "scale")
        if scale is None and found.part != "stored":
            raise refused(ADAPTER_CONFIG, "cause.adapter.no-scale")
        return Scaling(fixed=scale)
    if found.style == GGUF:
        alpha = _number(config.get("adapter.lora.alpha"), "alpha")
        return Scaling(alpha) if alpha else Scaling(fixed=1.0)
    key = "alpha" if method == "LOHA" else "lora_alpha"
    module = found.target.removesuffix(".bias") if found.part == "added" else found.target
    usual = config.get(key, _USUAL_ALPHA if "peft_type" in config else None)
    alpha = _number(_by_pattern(config.get("alpha_pattern"), module, usual), key)
    if method == "ADALORA":
        # its own scale is alpha, divided by the rank that was kept (and a little)
        return Scaling(alpha, smooth=1e-5) if alpha and alpha > 0 else Scaling(fixed=1.0)
    return Scaling(alpha, root=config.get("use_rslora") is True)


def _by_pattern(patterns: object, module: str, default: Any) -> Any:
    """The first value whose key ends the module's name, as PEFT matches it."""
    for key, value in patterns.items() if isinstance(patterns, Mapping) else ():
        text = str(key)
        if module == text or module.endswith(f".{text}"):
            return value
        if _PLAIN.fullmatch(text) and "." not in text:
            continue
        repeats = len(_REPEATED.findall(text))
        harmless = _HARMLESS.fullmatch(text) and not _REPEATED_GROUP.search(text)
        if not harmless or repeats > _MOST_REPEATS or len(module) > _LONGEST_NAME:
            raise refused(ADAPTER_CONFIG, "cause.adapter.wild-pattern", pattern=text)
        try:
            matched = re.match(rf"(.*\.)?({text})$", module)
        except re.error as error:
            fields = {"pattern": text, "detail": str(error)}
            raise refused(ADAPTER_CONFIG, "cause.adapter.bad-pattern", **fields) from error
        if matched:
            return value
    return default


def _number(value: object, key: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refused(ADAPTER_CONFIG, "cause.adapter.no-number", name=key, value=repr(value))
    if not math.isfinite(value):
        raise refused(ADAPTER_CONFIG, "cause.adapter.no-factor", name=key, value=repr(value))
    return float(value)


def _base(config: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The base that the adapter declares, by PEFT's, MLX's or GGUF's key."""
    for key in ("base_model_name_or_path", "model", "general.base_model.0.repo_url"):
        if isinstance(config.get(key), str) and config[key]:
            revision = config.get("revision")
            return str(config[key]), revision if isinstance(revision, str) else None
    name = config.get("general.base_model.0.name")
    return (name if isinstance(name, str) and name else None), None


def _strings(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(sorted({item for item in items if isinstance(item, str)}))


def _tokens(config: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]] | None:
    stated = config.get("trainable_token_indices", config.get("token_indices"))
    if stated is None:
        return None
    by_module = stated if isinstance(stated, Mapping) else {"": stated}
    found: dict[str, tuple[int, ...]] = {}
    for module, indices in by_module.items():
        if not isinstance(indices, list) or not all(type(i) is int and i >= 0 for i in indices):
            raise refused(ADAPTER_CONFIG, "cause.adapter.odd-tokens")
        if len(set(indices)) != len(indices):
            raise refused(ADAPTER_CONFIG, "cause.adapter.token-twice")
        found[str(module)] = tuple(indices)
    return found


def _version(config: Mapping[str, Any]) -> tuple[int, ...]:
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})", str(config.get("peft_version", "")))
    return tuple(int(part) for part in numbers.groups()) if numbers else ()


def _ranks(config: Mapping[str, Any], pieces: tuple[Piece, ...], stacked: bool) -> tuple[int, ...]:
    """Ranks that occur; factors of stacked experts hold the rank times their number."""
    found: set[int] = set()
    stated = config.get("r")
    for piece in pieces:
        rank = _rank(piece)
        if stacked and isinstance(stated, int) and 0 < stated < rank and rank % stated == 0:
            rank = stated
        if rank:
            found.add(rank)
    return tuple(sorted(found))


def _rank(piece: Piece) -> int:
    """Rank by the factors' own shapes, 0 where there are none."""
    own = piece.style in (GGUF, MLX)
    part = "b" if own else "a"
    spec = piece.parts.get(part) or piece.parts.get(f"embedding_{part}")
    if spec is None or len(spec.shape) < 2:
        return 0
    last = piece.style == GGUF or (own and len(spec.shape) == 3)
    return spec.shape[-1] if last else spec.shape[0]


def _summary(
    config: Mapping[str, Any], method: str, ranks: tuple[int, ...], pieces: tuple[Piece, ...]
) -> Message:
    """The method in a few words for people."""
    if method == "LORA" and any("magnitude" in piece.parts for piece in pieces):
        method = "DORA"
    said = message(f"note.adapter.method.{method}")
    if len(ranks) == 1:
        said = message("note.adapter.rank", before=said, rank=ranks[0])
    elif ranks:
        said = message("note.adapter.ranks", before=said, least=ranks[0], most=ranks[-1])
    if config.get("use_rslora") is True:
        said = message("note.adapter.stabilised", before=said)
    replaced = sum("stored" in piece.parts for piece in pieces)
    if replaced and method != "FULL":
        key = "note.adapter.replaced-one" if replaced == 1 else "note.adapter.replaced-several"
        said = message(key, before=said, tensors=replaced)
    return said
