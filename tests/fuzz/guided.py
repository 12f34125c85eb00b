"""Coverage-guided fuzzing of every parser, with atheris; printed as a table.

python -m tests.fuzz.guided                         every parser, ten minutes each
python -m tests.fuzz.guided gguf card --seconds 60  some of them, a minute each
python -m tests.fuzz.guided --keep                  and keep as few inputs as reach what all reach

Inputs are collected in `--corpus` (out/fuzz), those that went wrong in TARGET.lost there. atheris
is no dependency of the tests: tests/README.md says how it is built.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import CodeType

from msgspec import Struct

from tests.fuzz.answers import SEEDS, echo
from tests.fuzz.targets import ODD, targets, tried

CORPUS = Path(__file__).with_name("corpus")
ANSWERS = "answers"
Tried = Callable[[bytes], str | None]
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LONGEST_WORD = 40
_DONE = re.compile(r"^stat::number_of_executed_units: +(\d+)", re.MULTILINE)
_REACHED = re.compile(r"\bcov: (\d+)")


@contextmanager
def opened(name: str) -> Iterator[tuple[Sequence[bytes], Tried]]:
    """Good inputs of a parser, and what tries others."""
    if name == ANSWERS:
        with echo() as server:
            yield SEEDS, server.tried
    else:
        target = targets()[name]
        yield target.seeds, partial(tried, target)


def kept(name: str) -> list[bytes]:
    """The inputs that were kept for a parser."""
    file = CORPUS / f"{name}.zip"
    if not file.is_file():
        return []
    with zipfile.ZipFile(file) as archive:
        return [archive.read(one) for one in archive.namelist()]


def keep(name: str, inputs: Sequence[bytes]) -> None:
    """Keep inputs for a parser, the same bytes for the same inputs."""
    CORPUS.mkdir(exist_ok=True)
    ordered = sorted(set(inputs), key=lambda raw: (len(raw), raw))
    with zipfile.ZipFile(CORPUS / f"{name}.zip", "w") as archive:
        for number, raw in enumerate(ordered):
            entry = zipfile.ZipInfo(f"{number:04d}", _EPOCH)
            archive.writestr(entry, raw, zipfile.ZIP_DEFLATED, compresslevel=9)


def words(seeds: Sequence[bytes], tried: Tried) -> list[str]:
    """Strings in the modules of kinprint that good inputs run through, such as names of fields."""
    files: set[str] = set()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        for seed in seeds:
            tried(seed)
    finally:
        sys.setprofile(None)
    found: set[str] = set()
    own = (Path(file) for file in files if "/kinprint/" in file and file.endswith(".py"))
    pending: list[object] = [compile(file.read_text("utf-8"), file, "exec") for file in own]
    while pending:
        match pending.pop():
            case CodeType() as code:
                pending += code.co_consts
            case tuple() | frozenset() as several:
                pending += several
            case str() as word if 1 < len(word) <= _LONGEST_WORD:
                found.add(word)
    return sorted(found)


class Run(Struct):
    """What became of a parser: inputs tried, processor seconds, branches reached, faults."""

    name: str
    tried: int = 0
    seconds: float = 0.0
    reached: int = 0
    lost: int = 0


class Fuzzer:
    """One parser, its inputs in a folder, and atheris in a process of its own."""

    def __init__(self, name: str, corpus: Path) -> None:
        self.run = Run(name)
        self._inputs = corpus / name
        self._lost = corpus / f"{name}.lost"
        self._words = corpus / f"{name}.words"
        self._log = corpus / f"{name}.log"
        for folder in (self._inputs, self._lost):
            folder.mkdir(parents=True, exist_ok=True)
        with opened(name) as (seeds, tried):
            for number, raw in enumerate([*seeds, *kept(name)]):
                (self._inputs / f"known-{number:04d}").write_bytes(raw)
            known = [*ODD, *(word.encode("utf-8", "replace") for word in words(seeds, tried))]
            spelt = ("".join(f"\\x{byte:02x}" for byte in word) for word in known)
            self._words.write_text("".join(f'"{word}"\n' for word in spelt))

    def fuzz(self, seconds: float) -> None:
        """Try inputs for so long, and go on after a fault."""
        until = time.monotonic() + seconds
        while (left := int(until - time.monotonic())) > 0:
            code = self._start(
                f"-max_total_time={left}",
                f"-dict={self._words}",
                f"-artifact_prefix={self._lost}/",
                "-print_final_stats=1",
                str(self._inputs),
            )
            said = self._log.read_text("utf-8", "replace")
            done = _DONE.findall(said)
            self.run.tried += int(done[-1]) if done else 0
            self.run.reached = max([self.run.reached, *map(int, _REACHED.findall(said))])
            self.run.lost = sum(1 for _ in self._lost.iterdir())
            if not done:
                raise SystemExit(f"atheris ended with code {code}:\n{said[-2000:]}")

    def merge(self) -> None:
        """Keep as few and short inputs as reach what all of them reach."""
        with tempfile.TemporaryDirectory() as folder:
            self._start("-merge=1", folder, str(self._inputs))
            few = [file.read_bytes() for file in Path(folder).iterdir()]
        if few:
            keep(self.run.name, few)

    def _start(self, *options: str) -> int:
        with tempfile.TemporaryDirectory() as home, self._log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.instrumented", self.run.name, *options],
                stdout=log,
                stderr=log,
                env=os.environ | {"HF_HOME": home, "OMP_NUM_THREADS": "1"},
            )
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.run.seconds += used.ru_utime + used.ru_stime
        return process.returncode


def main(arguments: Sequence[str]) -> int:
    """Fuzz what was asked for, and print the table; 1 if anything was lost."""
    known = [*targets(), ANSWERS]
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(known))
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--corpus", type=Path, default=Path("out/fuzz"))
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args(arguments)
    if unknown := set(given.targets) - set(known):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    print("| parser | inputs | processor seconds | branches reached | lost |", flush=True)
    print("|---|---|---|---|---|", flush=True)
    lost = 0
    for name in given.targets or known:
        fuzzer = Fuzzer(name, given.corpus)
        fuzzer.fuzz(given.seconds)
        run = fuzzer.run
        cells = (name, f"{run.tried:,}", f"{run.seconds:.0f}", run.reached, run.lost or "none")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
        if given.keep:
            fuzzer.merge()
        lost += run.lost
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
