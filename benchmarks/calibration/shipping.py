"""`python -m benchmarks.calibration.shipping pairs.jsonl…`: strangers as the data that is shipped.

Prints `calibrated.toml`: pairs that were trained apart, teachers and pupils among them, no root
twice. Pairs of twins and descendants are left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kinprint.lineage.tests.calibrated import excess

HEAD = """\
# Pairs of small models that were trained apart, for the calibrated tier: no two share a root.
#
# Made by `python -m benchmarks.calibration` and `python -m benchmarks.calibration.shipping`.
# `taught` pairs are a teacher and a pupil that was trained on its outputs from a seed of its own.
# `excess` is the quality of the best match of units above that of random rows, `gram` the aligned
# Gram similarity. Both grow with training, so a small p-value from models this small is a hint.
"""


def main() -> None:
    print(HEAD, end="")
    for row in (json.loads(line) for name in sys.argv[1:] for line in _lines(name)):
        if row["truth"] != "stranger":
            continue
        shape = row["shape"]
        value = excess(row["quality"], shape["width"], shape["units"], shape["gated"])
        print("\n[[pair]]")
        print(f"roots = {json.dumps(row['roots'])}")
        print(f'stratum = "{"gated" if shape["gated"] else "plain"}"')
        print(f"excess = {value:.4f}\ngram = {row['gram']:.4f}")
        if row["how"] == "pupil":
            print("taught = true")


def _lines(name: str) -> list[str]:
    return Path(name).read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    main()
