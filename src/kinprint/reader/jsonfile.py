"""Small JSON files beside the weights, such as config.json."""

from __future__ import annotations

import json
from typing import Any

from kinprint.errors import BadConfig


def parse_object(path: str, raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`, read as leniently as Python reads and writes it.

    Configurations in the field begin with byte order marks and hold Infinity.
    """
    try:
        found = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise BadConfig(file=path, cause=str(error)) from None
    if not isinstance(found, dict):
        raise BadConfig(file=path, cause="it is not a JSON object")
    return found
