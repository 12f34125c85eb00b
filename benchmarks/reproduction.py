"""`python -m benchmarks.reproduction`: the whole reproduction over a slow network, and drawn.

Eleven sparse replicas with tokenizers of the real size, which are synthetic: the numbers say
what reading and computing cost, and nothing about the models.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bare import floor_seconds
from benchmarks.network import environment, mirror_of, traffic_since
from kinprint.replica import build_replicas
from kinprint.studies.reproduction import reproduction

# Tokens of the real vocabularies, and how many of them the two share.
TOKENS = {"upstage/Solar-Open-100B": 196_000, "zai-org/GLM-4.5-Air": 151_000}
SHARED = 80_000


def main() -> int:
    """Serve, run in a process of its own, print."""
    if sys.argv[1:2] == ["child"]:
        child(Path(sys.argv[2]))
        return 0
    what = reproduction("solar-vs-glm")
    names = [what.replicas.get(key, place) for key, place in what.models.items()]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        build_replicas(Path(folder), names)
        for name, count in TOKENS.items():
            write_tokenizer(Path(folder) / name / "tokenizer.json", name, count)
        with mirror_of(Path(folder)) as endpoint:
            traffic_since(endpoint)
            command = [sys.executable, "-m", "benchmarks.reproduction", "child", f"{home}/out"]
            done = subprocess.run(command, env=environment(endpoint, home), check=True,
                                  capture_output=True, text=True)  # fmt: skip
            traffic = traffic_since(endpoint)
            floor = floor_seconds(endpoint, traffic)
    found = json.loads(done.stdout)
    rows = [
        ("measurements", found["measured"], "s", 20),
        ("bytes", found["bytes"] / 1e6, "MB", 150),
        ("peak memory of measuring", found["peak_mb"], "MB", 400),
        ("drawing and writing everything", found["drawn"], "s", 30),
    ]
    print(f"{found['studies']} studies of {found['models']} replicas, 50 ms, 200 Mbit/s\n")
    for title, value, unit, limit in rows:
        good = "ok" if value <= limit else "MISSED"
        print(f"  {title:<32}{value:>9,.1f} {unit:<3} ≤ {limit:<4} {good}")
    print(
        f"\n  {len(traffic.requests):,} requests (counted by the server), "
        f"a bare client makes them in {floor:.1f} s"
    )
    print(f"  opening {found['opened']:.1f} s, processor {found['cpu']:.1f} s, "
          f"{found['files']} files")  # fmt: skip
    return 0 if all(value <= limit for _, value, _, limit in rows) else 1


def child(folder: Path) -> None:
    """One run: open, measure, draw; figures as one JSON line."""
    from kinprint.studies.study import Request
    from kinprint.verbs.reader import Meter, Reader
    from kinprint.verbs.reproducing import carry_out, open_models

    what = reproduction("solar-vs-glm")
    started = time.monotonic()
    with Reader() as reader:
        meter = Meter(reader)
        models, missing = open_models(what, reader, {}, replica=True)
        opened = time.monotonic()
        done = carry_out(what, models, Request(), meter, missing)
        spent = reader.cost
    measured = time.monotonic()
    peak, cpu = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, time.process_time()
    files = done.save(folder)
    print(json.dumps({
        "opened": opened - started, "measured": measured - started,
        "drawn": time.monotonic() - measured, "bytes": spent.bytes, "peak_mb": peak, "cpu": cpu,
        "studies": len(done.studies), "models": len(models), "files": len(files),
    }))  # fmt: skip


def write_tokenizer(file: Path, name: str, count: int) -> None:
    """A byte-level vocabulary of the real size, partly shared, with merges that build it."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = list(letters)
    shared = random.Random(0)
    own = random.Random(name)
    merges = []
    seen = set(tokens)
    while len(tokens) < count:
        rng = shared if len(tokens) < SHARED else own
        pool = len(letters) + (len(tokens) - len(letters)) // 4
        left, right = tokens[rng.randrange(pool)], tokens[rng.randrange(pool)]
        if left + right not in seen and len(left + right) < 14:
            seen.add(left + right)
            tokens.append(left + right)
            merges.append(f"{left} {right}")
    model = {
        "type": "BPE", "vocab": {token: at for at, token in enumerate(tokens)}, "merges": merges,
    }  # fmt: skip
    level = {"type": "ByteLevel", "add_prefix_space": False}
    file.write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "pre_tokenizer": level, "decoder": level,
        "model": model,
    }))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
