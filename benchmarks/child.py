"""One run in a process of its own: norms of two 100B models, or rows of their matrices.

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
from kinprint.records import Slice, TensorSpec
from kinprint.source.hub import open_hub

MODELS = ("upstage/Solar-Open-100B", "zai-org/GLM-4.5-Air")
TIMED_WITHOUT = (open_hub,)  # loaded on demand otherwise, within the time that is measured
COMMON_LAYERS = 46
ROWS = re.compile(r"^model\.layers\.(10|20|30|40)\.self_attn\.k_proj\.weight$")
NORM = re.compile(r"^model\.layers\.(\d+)\.(input|post_attention)_layernorm\.weight$")


def main() -> None:
    settings = {name: int(value) for name, value in (a.split("=") for a in sys.argv[1:])}
    step = settings.pop("rows", 0)
    started = time.monotonic()
    with Fetcher(cache=Cache.default(), policy=ReadPolicy(**settings)) as fetcher:
        checkpoints = open_checkpoints(MODELS, fetcher)
        wanted = ROWS if step else NORM
        names = [
            (one, [name for name in one.names() if _wanted(wanted, name)]) for one in checkpoints
        ]
        slices = [
            (one, [Slice(spec, _every(spec, step)) for spec in specs.values()])
            for one, specs in zip(checkpoints, locate_together(names), strict=True)
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


def _wanted(pattern: re.Pattern[str], name: str) -> bool:
    found = pattern.match(name)
    return found is not None and int(found[1]) < COMMON_LAYERS


def _every(spec: TensorSpec, step: int) -> range | None:
    return range(0, spec.shape[0], step) if step else None


if __name__ == "__main__":
    main()
