"""Which tensor is which in 95 architectures: the truth that roles and layouts are held against.

`architectures.json.gz` was made from tiny models of the public `transformers` library (5.22.2):
one forward pass was traced, roles were read off the data flow, names are those that
`save_pretrained` writes. Entries `hand:*` (families with code of their own) and `hub:*` (layouts
on the Hub that differ from `save_pretrained`, quantised ones) follow published layouts; `source`
says which. Each entry has `model_type`, `config` and `tensors`, and each tensor `name`, `shape`,
`dtype`, `role_truth`, `layer`, `expert` and, where the trace shows them, `role_alt`,
`role_detail`, `orient`, `layout`, `norm_kind` and `tower`.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("architectures.json.gz")

ARCHITECTURES: dict[str, dict[str, Any]] = json.loads(gzip.decompress(_FILE.read_bytes()))
