"""What models declare about their origin: claims of their authors, shown and never counted.

Everything here was written by strangers. A card is cut to its first kilobytes and to the few
fields about lineage before any parser sees it; whatever is then still no plain name is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CARD = "README.md"
_FIELDS = ("base_model", "base_model_relation", "base_models", "merged_models", "tags")
_MOST = 16  # models that one field may name
_LONGEST = 200
_RELATIONS = ("finetune", "adapter", "merge", "quantized")
_FENCE = re.compile(r"^---[ \t]*$")
_TOP = re.compile(r"^([A-Za-z_][\w-]*)[ \t]*:")


@dataclass(frozen=True, slots=True)
class Claim:
    """The file and field that says so, what it names, and its word for the relation if any."""

    where: str
    model: str
    relation: str = ""


def card_claims(head: bytes, path: str = CARD) -> list[Claim]:
    """Models that a card's first bytes name as their origin."""
    told = _front_matter(head.decode("utf-8-sig", "replace"))
    said = told.get("base_model_relation")
    relation = said if isinstance(said, str) and said in _RELATIONS else ""
    tags = told.get("tags")
    merge = isinstance(tags, list) and "merge" in tags
    found: list[Claim] = []
    for key in ("base_model", "base_models", "merged_models"):
        names = _names(told.get(key))
        word = relation or ("merge" if (merge and len(names) > 1) or "merged" in key else "")
        found += [Claim(f"{path}: {key}", name, word) for name in names]
    return found


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
    found: list[Claim] = []
    for at in range(min(count, _MOST) if isinstance(count, int) else 0):
        key = f"general.base_model.{at}"
        owner = _names(metadata.get(f"{key}.organization"))
        name = _names(metadata.get(f"{key}.name"))
        full = ["/".join((*owner, *name))] if name else []
        told = _names(metadata.get(f"{key}.repo_url")) or full
        found += [Claim(f"{path}: {key}", model) for model in told[:1]]
    return found


def _front_matter(text: str) -> Mapping[str, Any]:
    """The fields about lineage in a card's first block, by the Hub's own parser."""
    kept = "\n".join(_lineage_lines(text))
    if not kept:
        return {}
    from huggingface_hub import ModelCard

    try:
        data = ModelCard(f"---\n{kept}\n---\n", ignore_metadata_errors=True).data
        return {field: data.get(field) for field in _FIELDS}
    except Exception:  # broken or hostile YAML: the card then says nothing
        return {}


def _lineage_lines(text: str) -> Iterator[str]:
    """Lines of the fields that matter; a field that the cut may have shortened is left out."""
    lines = text.splitlines()
    if not lines or not _FENCE.match(lines[0]):
        return
    blocks: list[tuple[str, list[str]]] = []
    closed = False
    for line in lines[1:]:
        if _FENCE.match(line):
            closed = True
            break
        top = _TOP.match(line)
        if top:
            blocks.append((top[1], []))
        if blocks:
            blocks[-1][1].append(line)
    for name, block in blocks if closed else blocks[:-1]:
        if name in _FIELDS:
            yield from block


def _names(value: object) -> list[str]:
    """Names in a field that may hold one, or a list of some; anything else is no name."""
    listed = value if isinstance(value, list | tuple) else [value]
    found = []
    for one in listed[:_MOST]:
        if isinstance(one, Mapping):  # merge tools list models with their shares
            one = one.get("model") or one.get("name")
        if isinstance(one, str) and 0 < len(one.strip()) <= _LONGEST:
            found.append(one.strip())
    return list(dict.fromkeys(found))
