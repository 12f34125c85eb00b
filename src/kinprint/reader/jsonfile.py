"""Small JSON files beside the weights, such as config.json."""

from __future__ import annotations

from typing import Any

import msgspec

from kinprint.errors import BadConfig


def parse_object(path: str, raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`; files written with a byte order mark are read too."""
    try:
        found = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadConfig(file=path, cause=str(error)) from None
    if not isinstance(found, dict):
        raise BadConfig(file=path, cause="it is not a JSON object")
    return found
