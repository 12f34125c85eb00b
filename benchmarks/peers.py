"""`python -m benchmarks.peers FOLDER`: other tools on the same two models in the same run.

FOLDER is a virtual environment of their own; what is not in it is left out, and said so:

- modelDNA (arXiv 2607.10617): `pip install modeldna`;
- Cisco's Model Provenance Kit: `pip install` of a checkout of
  github.com/cisco-ai-defense/model-provenance-kit, with Python 3.12 or later;
- AWM (arXiv 2510.06738): a checkout of github.com/LUMIA-Group/AWM in FOLDER/AWM, and what its
  requirements.txt names.

Each compares two small models that come with kinprint, a base and its continued training, from
their folders, by the command that its documentation gives. Processes are whole, start included,
and all have one thread of arithmetic. Processor seconds are the median of three runs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.commands import Run, run_command
from benchmarks.network import environment
from kinprint.demo import FOLDER

RUNS = 3
OURS = "kinprint"
PAIR = (str(FOLDER / "zoo/base-a"), str(FOLDER / "zoo/a-cpt"))


class Tool(Struct, frozen=True):
    """A command that compares two models, and the file without which it is not there."""

    title: str
    command: tuple[str, ...]
    needs: Path


def main(arguments: Sequence[str]) -> int:
    command = (sys.executable, "-m", "kinprint", "compare", *PAIR)
    tools = [
        Tool(OURS, command, FOLDER),
        Tool(f"{OURS}, quick", (*command, "--level", "quick"), FOLDER),
    ]
    tools += peers(Path(arguments[0]).absolute()) if arguments else []
    ours: tuple[float, float] | None = None
    ahead = True
    print(f"{'':<24}{'cpu s':>8}{'× ours':>8}{'MB':>8}{'× ours':>8}")
    for tool in tools:
        if not tool.needs.exists():
            print(f"{tool.title:<24}  not installed")
            continue
        runs = measure(tool)
        cpu = statistics.median(one.cpu_seconds for one in runs)
        peak = float(max(one.peak_bytes for one in runs))
        ours = ours or (cpu, peak)
        ahead &= tool.title.startswith(OURS) or (cpu >= ours[0] and peak >= ours[1])
        cells = f"{cpu:.2f}", f"{cpu / ours[0]:.1f}", f"{peak / 1e6:.0f}", f"{peak / ours[1]:.1f}"
        print(f"{tool.title:<24}" + "".join(f"{cell:>8}" for cell in cells), flush=True)
    return 0 if ahead else 1


def peers(folder: Path) -> list[Tool]:
    """The tools that may be in a virtual environment."""
    programs, awm = folder / "bin", folder / "AWM" / "main.py"
    dna, kit = programs / "modeldna", programs / "provenancekit"
    script = (str(programs / "python"), str(awm), "--model_paths", *PAIR, "--device", "cpu")
    return [
        Tool("modelDNA", (str(dna), "compare", *PAIR), dna),
        Tool("Model Provenance Kit", (str(kit), "compare", *PAIR, "--plain"), kit),
        Tool("AWM", script, awm),
    ]


def measure(tool: Tool) -> list[Run]:
    """Some runs, each with an empty cache of its own; none may ask the network."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    runs = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as home:
            own = environment("", home) | single | {"HOME": home, "HF_HUB_OFFLINE": "1"}
            own.pop("HF_ENDPOINT")
            if not tool.title.startswith(OURS):
                own.pop("PYTHONPATH", None)
            runs.append(run_command(tool.command, own))
    return runs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
