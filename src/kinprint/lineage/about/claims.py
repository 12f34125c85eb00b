"""What models declare about their origin: claims of their authors, shown and never counted.

Everything here was written by strangers. A card is cut to its first kilobytes and to the few
fields about lineage before any parser sees it; whatever is then still no plain name is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

CARD = "README.md"
RECIPE = "mergekit_config.yml"
"""What mergekit leaves beside a model that it made."""
_FIELDS = ("base_model", "base_model_relation", "base_models", "merged_models", "tags")
_MOST = 16  # models that one field may name
_LONGEST = 200
_RELATIONS = ("finetune", "adapter", "merge", "quantized")
_FENCE = r"^---[ \t]*$"
_TOP = r"^([A-Za-z_][\w-]*)[ \t]*:"


class Claim(Struct, frozen=True):
    """A model that another names as its origin.

    Attributes
    ----------
    where
        The file and the field that say so.
    model
        What they name.
    relation
        Their word for the relation, empty if they have none.
    """

    where: str
    model: str
    relation: str = ""


def card_claims(head: bytes) -> list[Claim]:
    """Models that a card's first bytes name as their origin."""
    fields = _front_matter(head.decode("utf-8-sig", "replace"))
    stated = fields.get("base_model_relation")
    relation = stated if isinstance(stated, str) and stated in _RELATIONS else ""
    tags = fields.get("tags")
    merge = isinstance(tags, list) and "merge" in tags
    claims: list[Claim] = []
    for key in ("base_model", "base_models", "merged_models"):
        names = _names(fields.get(key))
        merged = (merge and len(names) > 1) or "merged" in key
        word = relation or ("merge" if merged else "")
        claims += [Claim(f"{CARD}: {key}", name, word) for name in names]
    return claims


def config_claims(config: Mapping[str, Any], own: Sequence[str], path: str) -> list[Claim]:
    """The model that a configuration was saved from, where that is not the model itself."""
    names = _names(config.get("_name_or_path"))
    return [Claim(f"{path}: _name_or_path", name) for name in names if name not in own]


def adapter_claims(config: Mapping[str, Any], path: str) -> list[Claim]:
    """What an adapter was trained on."""
    key = "base_model_name_or_path"
    return [Claim(f"{path}: {key}", name, "adapter") for name in _names(config.get(key))]


def gguf_claims(metadata: Mapping[str, object], path: str) -> list[Claim]:
    """The bases that a GGUF header names: by address if it has one, else by name."""
    count = metadata.get("general.base_model.count")
    claims: list[Claim] = []
    for at in range(min(count, _MOST) if isinstance(count, int) else 0):
        key = f"general.base_model.{at}"
        owner = _names(metadata.get(f"{key}.organization"))
        name = _names(metadata.get(f"{key}.name"))
        full_name = ["/".join((*owner, *name))] if name else []
        models = _names(metadata.get(f"{key}.repo_url")) or full_name
        claims += [Claim(f"{path}: {key}", model) for model in models[:1]]
    return claims


def recipe_claims(raw: bytes) -> list[Claim]:
    """Models that a recipe of mergekit merges, and the base that it names."""
    recipe = _parsed(raw.decode("utf-8-sig", "replace"))
    slices = [one for one in _listed(recipe.get("slices")) if isinstance(one, Mapping)]
    sources = [source for one in slices for source in _listed(one.get("sources"))]
    merged = [*_listed(recipe.get("models")), *sources]
    found = {"base_model": _names(recipe.get("base_model")), "models": _names(merged)}
    return [
        Claim(f"{RECIPE}: {key}", name, "merge") for key, names in found.items() for name in names
    ]


def table_claims(bases: object, where: str) -> list[Claim]:
    """Bases of a model in a table of the Hub's: `models` with their `id`, and one `relation`."""
    if not isinstance(bases, Mapping):
        return []
    stated = bases.get("relation")
    relation = stated if isinstance(stated, str) and stated in _RELATIONS else ""
    listed = [one for one in _listed(bases.get("models")) if isinstance(one, Mapping)]
    return [Claim(where, name, relation) for name in _names([one.get("id") for one in listed])]


def _listed(value: object) -> list[object]:
    return value[:_MOST] if isinstance(value, list) else []


def _front_matter(text: str) -> Mapping[str, Any]:
    """The fields about lineage in a card's first block, by the parser that the Hub uses."""
    return _parsed("\n".join(_lineage_lines(text)))


def _parsed(lines: str) -> Mapping[str, Any]:
    """A mapping in YAML; empty where it is broken, or anything else."""
    if not lines:
        return {}
    import yaml

    try:
        # Mappings merged by their aliases, again and again: a few hundred bytes become millions.
        events = yaml.parse(lines) if "*" in lines else ()
        if any(isinstance(event, yaml.AliasEvent) for event in events):
            return {}
        data = yaml.safe_load(lines)
    except Exception:  # broken or hostile YAML: the card then says nothing
        return {}
    return data if isinstance(data, Mapping) else {}


def _lineage_lines(text: str) -> Iterator[str]:
    """Lines of the fields that matter; a field that the cut may have shortened is left out."""
    lines = text.splitlines()
    if not lines or not re.match(_FENCE, lines[0]):
        return
    blocks: list[tuple[str, list[str]]] = []
    closed = False
    for line in lines[1:]:
        if re.match(_FENCE, line):
            closed = True
            break
        top = re.match(_TOP, line)
        if top:
            blocks.append((top[1], []))
        if blocks:
            blocks[-1][1].append(line)
    for name, block in blocks if closed else blocks[:-1]:
        if name in _FIELDS:
            yield from block


def _names(value: object) -> list[str]:
    """Names in a field that may hold one, or a list of some; anything else is no name."""
    entries = value if isinstance(value, list | tuple) else [value]
    names = []
    for entry in entries[:_MOST]:
        if isinstance(entry, Mapping):  # merge tools list models with their shares
            entry = entry.get("model") or entry.get("name")
        if isinstance(entry, str) and 0 < len(entry.strip()) <= _LONGEST:
            names.append(entry.strip())
    return list(dict.fromkeys(names))
