"""What a repository says about itself: its card, its configuration, its parameter count.

The Hub reads these from the files and shows them in its interface; clients and people look
there first, so the mirror does the same. A file that cannot be read is as good as absent.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

from kinprint.mirror.folder import Entry, Snapshot

_MAX_JSON = 64 << 20
_MAX_HEADER = 100_000_000
_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_CONFIG_KEYS = ("architectures", "model_type", "quantization_config", "auto_map")


def read_card(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the metadata block of README.md, or None."""
    entry = snapshot.entries.get("README.md")
    if entry is None:
        return None
    from huggingface_hub import metadata_load

    try:
        card = metadata_load(entry.file)
    except Exception:  # any broken text or YAML: the card then says nothing
        return None
    return _plain(card) if card else None


def read_config(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the part of config.json that the Hub shows, or None."""
    config = _load_json(snapshot.entries.get("config.json"))
    if not isinstance(config, dict):
        return None
    return {key: config[key] for key in _CONFIG_KEYS if key in config}


def count_parameters(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the number of parameters by dtype and in total, or None without safetensors.

    Only headers are read. Like the Hub, it looks at the one file or at those of the index.
    """
    if _SINGLE in snapshot.entries:
        names = [_SINGLE]
    else:
        index = _load_json(snapshot.entries.get(_INDEX))
        weights = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(weights, dict):
            return None
        names = sorted({str(name) for name in weights.values()})
    counts: Counter[str] = Counter()
    for name in names:
        header = _read_header(snapshot.entries.get(name))
        if header is None:
            return None
        for tensor, described in header.items():
            if tensor != "__metadata__":
                number = 1
                for size in described["shape"]:
                    number *= size
                counts[described["dtype"]] += number
    return {"parameters": dict(counts), "total": counts.total()}


def _read_header(entry: Entry | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    try:
        with Path(entry.file).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(_MAX_HEADER, entry.size):
                return None
            header = json.loads(file.read(length))
        tensors = [value for name, value in header.items() if name != "__metadata__"]
        good = all(isinstance(one["dtype"], str) and _is_shape(one["shape"]) for one in tensors)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return header if good else None


def _is_shape(shape: object) -> bool:
    return isinstance(shape, list) and all(isinstance(size, int) for size in shape)


def _load_json(entry: Entry | None) -> object:
    if entry is None or entry.size > _MAX_JSON:
        return None
    try:
        return json.loads(Path(entry.file).read_bytes())
    except (OSError, ValueError):
        return None


def _plain(value: Any) -> Any:
    # YAML knows dates, JSON does not.
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    return value
