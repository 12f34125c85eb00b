"""`python -m kinprint.replica FOLDER [NAME…]`: build replicas and say how large they are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kinprint.errors import KinprintError
from kinprint.replica.build import build_replicas
from kinprint.replica.layout import replica_names
from kinprint.replica.sparse import disk_bytes, full_bytes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m kinprint.replica",
        description="Build sparse replicas of large models. They are NOT the real models.",
        epilog="Names: " + ", ".join(replica_names()),
    )
    parser.add_argument("folder", type=Path, help="where the replicas go, as FOLDER/org/name")
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones; all by default")
    options = parser.parse_args(arguments)
    names: list[str] = options.names or list(replica_names())
    try:
        places = build_replicas(options.folder, names)
    except KinprintError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for name, place in zip(names, places, strict=True):
        length, used = full_bytes(place) / 1e9, disk_bytes(place) / 1e6
        print(f"{name:<40} {length:8.1f} GB long {used:6.1f} MB on disk")
    return 0


if __name__ == "__main__":
    sys.exit(main())
