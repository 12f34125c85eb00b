"""The least that a command does before it can answer: a plain script, measured as commands are.

Python starts, NumPy is loaded, headers of weight files are read by `json`; where a command asks
the hub for the state of its models, the hub's own client is loaded and asks for it. Processor
seconds of a command over those of this script say how much of it is the command's own work, on
slow and fast cores alike, and hardly depend on what else the machine does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str]) -> None:
    import numpy  # noqa: F401

    for given in arguments:
        if Path(given).is_dir():
            read_headers(Path(given))
        else:
            ask_hub(given)


def read_headers(folder: Path) -> None:
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            json.loads(stream.read(int.from_bytes(stream.read(8), "little")))


def ask_hub(model: str) -> None:
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    get_session().get(f"{constants.ENDPOINT}/api/models/{model}?blobs=true").raise_for_status()


if __name__ == "__main__":
    main(sys.argv[1:])
