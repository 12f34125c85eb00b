"""Small JSON files beside the weights, such as config.json."""

from __future__ import annotations

import json
from typing import Any

from kinprint import text
from kinprint.errors import BadConfig


def parse_object(path: str, raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`, read as leniently as Python reads and writes it.

    Configurations in the field begin with byte order marks and hold Infinity.
    """
    try:
        found = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        cause = text.message("cause.json.broken", detail=str(error))
        raise BadConfig(file=path, cause=cause) from None
    if not isinstance(found, dict):
        raise BadConfig(file=path, cause=text.message("cause.json.no-object"))
    return found
