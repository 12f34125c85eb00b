"""One run, in a process of its own, of what the 2026 studies read: norms of two 100B models.

Prints one JSON line: what it cost, how long it took, and how much memory it needed. Started
by `benchmarks.__main__` with HF_ENDPOINT pointing at a mirror of the sparse replicas.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time

from kinprint.reader.cache import Cache
from kinprint.reader.checkpoint import locate_together, open_checkpoints, read_together
from kinprint.reader.fetch import Fetcher
from kinprint.reader.plan import ReadPolicy
from kinprint.records import Slice
from kinprint.source.hub import open_hub

MODELS = ("upstage/Solar-Open-100B", "zai-org/GLM-4.5-Air")
TIMED_WITHOUT = (open_hub,)  # loaded on demand otherwise, within the time that is measured
COMMON_LAYERS = 46
NORM = re.compile(r"^model\.layers\.(\d+)\.(input|post_attention)_layernorm\.weight$")


def main() -> None:
    settings = {name: int(value) for name, value in (a.split("=") for a in sys.argv[1:])}
    started = time.monotonic()
    with Fetcher(cache=Cache.default(), policy=ReadPolicy(**settings)) as fetcher:
        checkpoints = open_checkpoints(MODELS, fetcher)
        requests = []
        for checkpoint in checkpoints:
            names = [
                name
                for name in checkpoint.names()
                if (found := NORM.match(name)) and int(found[1]) < COMMON_LAYERS
            ]
            requests.append((checkpoint, names))
        slices = [
            (checkpoint, [Slice(spec) for spec in specs.values()])
            for checkpoint, specs in zip(checkpoints, locate_together(requests), strict=True)
        ]
        vectors = [vector for part in read_together(slices) for vector in part]
        spent = fetcher.spent
    print(
        json.dumps(
            {
                "vectors": len(vectors),
                "numbers": sum(vector.size for vector in vectors),
                "bytes": spent.bytes,
                "requests": spent.requests,
                "seconds": time.monotonic() - started,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
            }
        )
    )


if __name__ == "__main__":
    main()
