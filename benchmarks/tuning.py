"""`python -m benchmarks.tuning`: how the read policy's numbers were chosen.

Each setting is run cold three times against the network of `make bench`: the norm vectors of two
100B models, and for `gap` every fourth or sixteenth row of eight matrices (24 or 120 kB apart). The
table shows the median time with the requests and megabytes it took. Joining is quicker wherever
the line is wide, but bytes are what people pay for: `gap` stops where a request costs as
much as the bytes in between on a line of 200 Mbit/s in all (50 ms / 16 × 25 MB/s = 78 kB).
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from typing import Any

from benchmarks.__main__ import MODELS
from benchmarks.network import environment, mirror_of_replicas
from kinprint.records import Slice, TensorSpec

SETTINGS: tuple[tuple[str, tuple[int, ...], int], ...] = (
    ("first_slack", (0, 1 << 10, 9 << 10, 17 << 10, 65 << 10), 0),
    ("connections", (4, 8, 16, 32), 0),
    ("gap", (0, 16 << 10, 64 << 10, 256 << 10), 4),
    ("gap", (0, 16 << 10, 64 << 10, 256 << 10), 16),
)
COMMON_LAYERS = 46
MATRIX = re.compile(r"^model\.layers\.(10|20|30|40)\.self_attn\.k_proj\.weight$")
NORM = re.compile(r"^model\.layers\.(\d+)\.(input|post_attention)_layernorm\.weight$")


def main() -> None:
    if sys.argv[1:]:
        setting, number, every = sys.argv[1:]
        print(json.dumps(read_once({setting: int(number)}, int(every))))
        return
    with mirror_of_replicas(MODELS) as endpoint:
        for name, values, step in SETTINGS:
            what = f"every {step}th row" if step else "norms"
            print(f"\n{what}\n{name:>12}  requests      MB  seconds")
            for value in values:
                print(f"{value:>12}  {measured(endpoint, name, value, step)}")


def measured(endpoint: str, name: str, value: int, step: int) -> str:
    """Requests, megabytes and the median time under one setting."""
    runs: list[dict[str, Any]] = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.tuning", name, str(value), str(step)],
                env=environment(endpoint, home),
                capture_output=True,
                text=True,
                check=True,
            )
            runs.append(json.loads(done.stdout))
    seconds = statistics.median(one["seconds"] for one in runs)
    return f"{runs[0]['requests']:>8}  {runs[0]['bytes'] / 1e6:>6.2f}  {seconds:.2f}"


def read_once(settings: dict[str, int], step: int) -> dict[str, float]:
    """Read norms, or every `step`-th row of a few matrices, under a policy; what it cost."""
    from kinprint.reader.cache import Cache
    from kinprint.reader.checkpoint import open_checkpoint
    from kinprint.reader.fetch import Fetcher, side_by_side
    from kinprint.reader.plan import ReadPolicy

    import_module("kinprint.source.hub")  # on demand otherwise, within the time that is measured
    pattern = MATRIX if step else NORM
    started = time.monotonic()
    with Fetcher(cache=Cache.default(), policy=ReadPolicy(**settings)) as fetcher:
        checkpoints = side_by_side(lambda name: open_checkpoint(name, fetcher), MODELS)
        located = side_by_side(
            lambda one: one.tensors([name for name in one.names() if wanted(pattern, name)]),
            checkpoints,
        )
        slices = [[Slice(spec, rows(spec, step)) for spec in specs.values()] for specs in located]
        pairs = list(zip(checkpoints, slices, strict=True))
        fetcher.ensure(want for checkpoint, parts in pairs for want in checkpoint.wants(parts))
        for checkpoint, parts in pairs:
            checkpoint.read(parts)
        spent = fetcher.spent
    seconds = time.monotonic() - started
    return {"bytes": spent.bytes, "requests": spent.requests, "seconds": seconds}


def wanted(pattern: re.Pattern[str], name: str) -> bool:
    """Whether a tensor is one of those to read, in a layer that both models have."""
    found = pattern.match(name)
    return found is not None and int(found[1]) < COMMON_LAYERS


def rows(spec: TensorSpec, step: int) -> range | None:
    """The rows to read; all of them without a step."""
    return range(0, spec.shape[0], step) if step else None


if __name__ == "__main__":
    main()
