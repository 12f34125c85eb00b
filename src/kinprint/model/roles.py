"""Which tensor is which: a role, a layer and an expert for every name of a model.

Names are looked up in tables, shapes and the configuration decide what names cannot, and
what stays unknown is called so: comparisons must never rest on a guess about a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from math import prod
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from kinprint.errors import printable
from kinprint.model.geometry import Geometry, geometry_of, unusable_sizes
from kinprint.model.names.contradictions import (
    allowed_numbers,
    contradiction,
    layer_contradiction,
)
from kinprint.model.names.patterns import (
    Pattern,
    Patterns,
    Series,
    is_number,
    read_patterns,
    with_halves,
)
from kinprint.model.names.rivals import split_rivals
from kinprint.model.names.shapes import expert_count, settle
from kinprint.model.names.tables import GGUF, Ending, Family, Tables, Word, load_tables
from kinprint.model.names.towers import BESIDE, split_by_width, split_stacks, tower_of
from kinprint.model.names.words import FINAL_NORM, SIDE_NORM, WordFinder
from kinprint.records import Role, TensorSpec, bias_of
from kinprint.text import Message, message

_UNKNOWN = Word(Role.OTHER)
_SCALES = Ending(Role.OTHER, "scales")
_ROUTER, _BIAS = Role.ROUTER, Role.BIAS
_IN_ANY_STACK = (Role.OTHER, Role.BIAS, Role.NORM_OTHER)
_SCALED = (".weight", ".W_q")
_SHOWN = 40  # characters of what stands where a size should be
_TEXT = (None, "encoder", "decoder")  # an encoder's embedding may serve its decoder and the head
_GGUF_NAMES = ("blk.", "token_embd.")
_WEIGHT_ENDINGS = (".weight", "", ".qweight", ".weight_packed", "_blocks", ".blocks", ".scale")


class TensorRole(msgspec.Struct, frozen=True, gc=False):
    """What one tensor is.

    `stacked` is the number of experts in a tensor that holds all of them. `detail` says
    what the role leaves open: the part of multi-head latent attention, the kind of a
    quantisation companion, the weight's role for a bias, and inside a tower the role the
    tensor has there. `tower` is None for the text model. `of` names the weight that a bias
    or a companion belongs to.
    """

    role: Role
    layer: int | None = None
    expert: int | None = None
    stacked: int | None = None
    detail: str | None = None
    tower: str | None = None
    of: str | None = None


class RoleMap(Struct, frozen=True):
    """The roles of a model's tensors, with everything that could not be settled.

    `family` is the naming family whose words were used, "unknown" where none was
    recognised. `tied` says that the output head is the embedding, None if unknown. `series` has
    tensors together whose roles differ by the expert alone, or by the weight they belong to.
    """

    roles: Mapping[str, TensorRole]
    warnings: tuple[Message, ...]
    family: str
    tied: bool | None = None
    series: tuple[Series, ...] = ()


class _Meaning(Struct, frozen=True):
    """What a pattern was found to be."""

    word: Word | None
    ending: Ending | None
    tower: str | None


class _Kind(Struct, frozen=True):
    """A series, with the first of its tensors."""

    series: Series
    spec: TensorSpec
    role: TensorRole


def assign_roles(
    tensors: Sequence[TensorSpec],
    config: Mapping[str, Any],
    metadata: Mapping[str, object] | None = None,
    complete: bool = True,
) -> RoleMap:
    """Give every tensor its role; `metadata` is a GGUF file's own, if it is one.

    Nothing is read but names, shapes and the configuration, so this costs no bytes. Unless the
    tensors are `complete`, nothing is said of what is missing among them.
    """
    tables = load_tables()
    found = read_patterns(tensors, tables)
    geometry = geometry_of(config, metadata)
    family = _family(found, config, metadata or {}, tables)
    found = with_halves(found, family.halves, tables.halves)
    finder = WordFinder(tables, family)
    words, endings, experts = _words(found.patterns, finder, expert_count(config, geometry))
    towers = {id(p): tower_of(p, family, tables) for p in found.patterns}
    split_stacks(found.patterns, towers)
    split_by_width(found.patterns, words, towers, _text_width(config, geometry))

    def allowed(series: Series, word: Word) -> int:
        """How many numbers of a series have a place in the configured model."""
        shape, count = tensors[series.members[0]].shape, len(series.members)
        halved = series.pattern.stack in found.halved and not family.halves
        depth = (geometry.layers or 0) * (2 if halved else 1)
        if series.layer is not None and 0 < depth <= series.layer:
            return 0
        if word.detail is not None:
            return count * prod(shape)
        return allowed_numbers(series.pattern, word.role, shape, count, geometry, config)

    rivals = split_rivals(found, words, endings, towers, finder, allowed)
    meanings = {key: _Meaning(word, endings[key], towers[key]) for key, word in words.items()}
    meanings = _with_towers(found.patterns, meanings, tables)
    # In the order of the tensors, each with its role once it is known.
    roles = dict.fromkeys([spec.name for spec in tensors], TensorRole(Role.OTHER))
    series = [part for one in found.series for part in _alike(one, meanings[id(one.pattern)])]
    for one in series:
        members = [tensors[place] for place in one.members]
        roles.update(_roles(members, one, meanings[id(one.pattern)], experts, roles.keys()))
    kinds = [_Kind(one, spec := tensors[one.members[0]], roles[spec.name]) for one in series]
    _own_router_biases(roles, kinds)
    if complete and geometry.tied:
        kinds = _with_table(roles, kinds)
    warnings = [
        *(
            message("note.no-size", name=name, value=printable(value, _SHOWN))
            for name, value in unusable_sizes(config).items()
        ),
        *rivals,
        *_unknown(found.patterns, meanings),
        *_contradictions(kinds, geometry, config, complete),
    ]
    tied = _tied(kinds, geometry)
    if (
        complete
        and tied is None
        and geometry.tied is False
        and (geometry.architecture or "").endswith("CausalLM")
    ):
        warnings.append(message("note.no-head"))
    return RoleMap(roles, tuple(warnings), family.name, tied, tuple(series))


def _family(
    found: Patterns, config: Mapping[str, Any], metadata: Mapping[str, object], tables: Tables
) -> Family:
    """Names come first for GGUF, whose words are its own whatever the configuration says."""
    in_gguf = sum(one.numbers for one in found.patterns if one.text.startswith(_GGUF_NAMES))
    most = 2 * in_gguf > sum(one.numbers for one in found.patterns)
    if most or "general.architecture" in metadata:
        return tables.family_of(config, str(metadata.get("general.architecture", GGUF))) or Family(
            GGUF
        )
    nameless = Family("unknown")
    layered = [pattern for pattern in found.patterns if pattern.layered]
    main = [pattern for pattern in layered if tower_of(pattern, nameless, tables) is None]
    parts = frozenset(pattern.part for pattern in main or layered)
    declared = tables.family_of(config, None)
    seen = tables.family_with(parts)
    # A configuration may be wrapped or reused; marks that contradict it win only if the
    # declared family has marks of its own that are missing.
    if declared is None or (declared.marks and not declared.is_marked_by(parts) and seen.words):
        return seen
    return declared


def _words(
    patterns: Sequence[Pattern], finder: WordFinder, experts: int | None
) -> tuple[dict[int, Word | None], dict[int, Ending | None], int | None]:
    """What the names of patterns say, and the number of experts."""
    stacks: dict[tuple[str, ...], list[Pattern]] = defaultdict(list)
    for pattern in patterns:
        stacks[pattern.stack].append(pattern)
    words: dict[int, Word | None] = {}
    endings: dict[int, Ending | None] = {}
    ends = set()  # places whose own tensors include a final norm
    above = {stack[:depth] for stack in stacks for depth in range(len(stack))}
    for pattern in stacks.get((), ()):
        words[id(pattern)], endings[id(pattern)] = finder.find(pattern)
        if words[id(pattern)] == FINAL_NORM:
            if finder.is_misplaced(pattern, above):
                words[id(pattern)] = SIDE_NORM
            else:
                ends.add(pattern.parts[:-1])
    for stack, members in stacks.items():
        if not stack:
            continue
        context = _context(members, stack[:-1] in ends, finder.tables)
        for pattern in members:
            words[id(pattern)], endings[id(pattern)] = finder.find(pattern, context)
            pattern.ending = endings[id(pattern)] or pattern.ending
        experts = settle(members, words, experts)
    return words, endings, experts


def _text_width(config: Mapping[str, Any], geometry: Geometry) -> int | None:
    """The text model's width, if the configuration speaks of several models."""
    parts = [part for name, part in config.items() if str(name).endswith("_config")]
    several = any(
        isinstance(p, Mapping) and ("model_type" in p or "hidden_size" in p) for p in parts
    )
    return geometry.hidden if several else None


def _context(members: Sequence[Pattern], ended: bool, tables: Tables) -> dict[str, Word]:
    """Words that mean something else in this stack, because of what else it has."""
    parts = {pattern.part for pattern in members} | {".".join(p.parts) for p in members}
    changed: dict[str, Word] = {}
    for condition in tables.conditions:
        if condition.ended in (None, ended) and all(part in parts for part in condition.has):
            changed.update(condition.then)
    return changed


def _with_towers(
    patterns: Sequence[Pattern], meanings: dict[int, _Meaning], tables: Tables
) -> dict[int, _Meaning]:
    """Make tensors of other towers "other", unless a tower is all there is."""
    kept = tables.towers_with_roles
    main = any(
        pattern.layered and (meanings[id(pattern)].tower or "encoder") in kept
        for pattern in patterns
    )
    result = {}
    for pattern in patterns:
        meaning = meanings[id(pattern)]
        named = meaning.tower is not None and not meaning.tower.endswith(BESIDE)
        if main and named and meaning.tower not in kept:
            inner = None if meaning.word is None else _meant(meaning.word)
            if meaning.ending is not None and meaning.ending.role is not None:
                own = meaning.ending.role
                inner = bias_of(inner) if own is Role.BIAS and inner is not None else own
            meaning = _Meaning(Word(Role.OTHER, inner), None, meaning.tower)
        result[id(pattern)] = meaning
    return result


def _alike(series: Series, meaning: _Meaning) -> list[Series]:
    """A series, or each of its tensors where other names decide on what it is: see `_role`."""
    scale = meaning.ending is not None and meaning.ending.detail == "scale"
    return series.apart() if scale else [series]


def _roles(
    members: Sequence[TensorSpec],
    series: Series,
    meaning: _Meaning,
    experts: int | None,
    names: Set[str],
) -> Iterable[tuple[str, TensorRole]]:
    """The role of each tensor of a series by its name."""
    numbered = iter(zip(members, series.experts, strict=True))
    first = _role(*next(numbered), series, meaning, experts, names)
    if first.of is None:  # then names add nothing but the expert's number
        role, layer, _, stacked, detail, tower, _ = astuple(first)
        others = series.experts[1:]
        rest = [TensorRole(role, layer, expert, stacked, detail, tower) for expert in others]
    else:
        rest = [_role(spec, expert, series, meaning, experts, names) for spec, expert in numbered]
    return zip([spec.name for spec in members], [first, *rest], strict=True)


def _role(
    spec: TensorSpec,
    expert: int | None,
    series: Series,
    meaning: _Meaning,
    experts: int | None,
    names: Set[str],
) -> TensorRole:
    pattern, layer = series.pattern, series.layer
    word, ending = meaning.word or _UNKNOWN, meaning.ending
    role, detail, of = word.role, word.detail, None
    stacked = None
    if expert is None and role.of_experts:
        numbers = [part for part in pattern.parts if is_number(part)]
        if numbers:
            expert = int(numbers[-1])
        else:
            deep = 2 if ending and ending.role is Role.BIAS else 3
            stacked = spec.shape[0] if len(spec.shape) >= deep else experts
    if pattern.adapter is not None:
        base = _adapted(spec.name, pattern.adapter)
        return TensorRole(Role.OTHER, layer, expert, stacked, pattern.adapter, meaning.tower, base)
    if (
        ending is not None
        and ending.detail == "scale"
        and any(spec.name.removesuffix(".scale") + end in names for end in _SCALED)
    ):
        ending = _SCALES
    if ending is not None and ending.role is not None:
        of = _owner(spec.name, names)
        detail = _meant(word) if ending.role is Role.BIAS and meaning.word else ending.detail
        role = ending.role
    elif ending is not None and ending.detail == "packed":
        detail = detail or "packed"
    return TensorRole(role, layer, expert, stacked, detail, meaning.tower, of)


def _meant(word: Word) -> str:
    """What a word says: its role, or the detail where the role says nothing."""
    return word.detail or word.role if word.role is Role.OTHER else word.role


def _adapted(name: str, adapter: str) -> str:
    """What an adapter's name stands behind: the segments before its own."""
    segments = name.split(".")
    place = next((i for i, one in enumerate(segments) if one.lower() == adapter), 0)
    return ".".join(segments[:place])


def _owner(name: str, names: Set[str]) -> str:
    """The weight that a companion's name extends, or at least their common beginning."""
    base = name
    for _ in range(4):
        for cut in (base.rpartition(".")[0], base.rpartition("_")[0]):
            for ending in _WEIGHT_ENDINGS if cut else ():
                if cut + ending in names and cut + ending != name:
                    return cut + ending
        base = base.rpartition(".")[0]
        if base.count(".") < 2:
            break
    return name.rpartition(".")[0]


def _own_router_biases(roles: dict[str, TensorRole], kinds: Iterable[_Kind]) -> None:
    """Give the routers' correction terms, which lie in many places, to their routers."""
    if not any(_is_lone_router_bias(one.role) for one in kinds):
        return
    routers = {
        (role.tower, role.layer): name for name, role in roles.items() if role.role is _ROUTER
    }
    for name, role in roles.items():
        if _is_lone_router_bias(role):
            roles[name] = replace(role, of=routers.get((role.tower, role.layer)))


def _with_table(roles: dict[str, TensorRole], kinds: Sequence[_Kind]) -> list[_Kind]:
    """The kinds with an embedding, which a model that is tied may store as the head alone."""
    text = [one for one in kinds if one.role.tower in _TEXT]
    if any(one.role.role is Role.EMBED for one in text):
        return list(kinds)
    heads = [one.spec.name for one in text if one.role.role is Role.LM_HEAD]
    roles.update({name: replace(roles[name], role=Role.EMBED) for name in heads})
    return [replace(one, role=roles[one.spec.name]) for one in kinds]


def _is_lone_router_bias(role: TensorRole) -> bool:
    return role.role is _BIAS and role.detail == _ROUTER and role.of is None


def _unknown(patterns: Sequence[Pattern], meanings: Mapping[int, _Meaning]) -> list[Message]:
    """One line for each pattern of names that no table knows."""
    lines = []
    for pattern in patterns:
        meaning = meanings[id(pattern)]
        silent = meaning.ending is not None and meaning.ending.role is not None
        if meaning.word is None and not silent and meaning.tower is None and not pattern.adapter:
            key = "note.unknown-names" if pattern.tensors > 1 else "note.unknown-name"
            lines.append(message(key, name=pattern.text, tensors=pattern.tensors))
    return lines


def _contradictions(
    kinds: Sequence[_Kind], geometry: Geometry, config: Mapping[str, Any], complete: bool
) -> list[Message]:
    seen: dict[tuple[str, tuple[int, ...]], Message | None] = {}
    for one in kinds:
        pattern, role, shape = one.series.pattern, one.role, one.spec.shape
        key = (pattern.text, shape)
        if key in seen:
            continue
        seen[key] = None
        if role.tower is None and role.detail is None:
            seen[key] = contradiction(pattern, role.role, shape, geometry, config)
    lines = [
        message("note.shape", shape=list(shape), name=name, wanted=wanted)
        for (name, shape), wanted in seen.items()
        if wanted is not None
    ]
    layers = layer_contradiction(_layer_counts(kinds), geometry, config, complete)
    return [*lines, layers] if layers else lines


def _layer_counts(kinds: Sequence[_Kind]) -> Iterable[int]:
    """The number of layers of each stack, for language models of one stack of blocks.

    Layers with a projection of their own for predicting further tokens do not count.
    """
    towers = {one.role.tower for one in kinds}
    embedded = any(one.role.role is Role.EMBED and one.role.tower is None for one in kinds)
    if not embedded or {"encoder", "decoder"} & towers:
        return ()
    further = {one.role.layer for one in kinds if one.role.detail == "mtp_eh_proj"}
    last: dict[tuple[str, ...], int] = {}
    for one in kinds:
        layer, role, stack = one.series.layer, one.role, one.series.pattern.stack
        if layer is None or layer in further or role.tower is not None:
            continue
        if role.role not in _IN_ANY_STACK:
            last[stack] = max(last.get(stack, 0), layer + 1)
    return last.values()


def _tied(kinds: Iterable[_Kind], geometry: Geometry) -> bool | None:
    roles = {one.role.role for one in kinds if one.role.tower in _TEXT}
    if Role.LM_HEAD in roles or Role.EMBED not in roles:
        return False if Role.LM_HEAD in roles else None
    return True if geometry.tied is not False else None
