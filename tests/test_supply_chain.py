"""Where kinprint comes from and what it brings: locked, licensed, quiet at import, reproducible."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.sbom import ROOT, document, licence, locked

LOCKS = ("run.lock", "test.lock")
# Licences that allow use, change and sale without further duties towards users of kinprint.
FREE = re.compile(
    r"\b(MIT|MIT-0|0BSD|BSD|BSD-[23]-Clause|Apache|Apache-2\.0|PSF-2\.0|ISC|MPL-2\.0|Zlib|CC0-1\.0"
    r"|Unlicense|CNRI-Python|HPND|LicenseRef-Matplotlib)\b",
    re.IGNORECASE,
)
OWN_WORDS = {"matplotlib": "License agreement for matplotlib"}
BOUND = re.compile(r"\b(A?GPL|LGPL|SSPL|BUSL|CC-BY-NC)", re.IGNORECASE)
QUIET = """
import sys
def hook(event, arguments):
    if event.startswith(("socket.connect", "socket.get", "subprocess.", "os.system")):
        raise SystemExit(f"{event} {arguments!r}")
sys.addaudithook(hook)
import importlib, pkgutil, kinprint
for found in pkgutil.walk_packages(kinprint.__path__, "kinprint."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
"""


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_is_locked_with_digests(name: str) -> None:
    packages = locked(ROOT / "requirements" / name)
    assert len(packages) > 20
    assert all(one.digests for one in packages)
    raw = (ROOT / "requirements" / name).read_text("utf-8")
    assert not re.search(r"^[^#\s-][^\n]*(@ |://)", raw, re.MULTILINE)


def test_everything_is_installed_from_locks_by_a_locked_installer() -> None:
    (installer,) = locked(ROOT / "requirements" / "pip.lock")
    assert installer.name == "pip" and installer.digests
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "--require-hashes -r requirements/pip.lock" in makefile
    assert "--no-deps --no-compile --require-hashes -r $(1)" in makefile
    assert set(re.findall(r"call install,requirements/(.*)\)", makefile)) == set(LOCKS)


def test_what_tests_need_holds_what_is_needed_to_run() -> None:
    run, test = (
        {(one.name, one.version) for one in locked(ROOT / "requirements" / name)} for name in LOCKS
    )
    assert run <= test


def test_what_is_installed_with_it_is_free() -> None:
    told = {one.name: licence(one.name) for one in locked()}
    known = {name: said for name, said in told.items() if said is not None}
    assert len(known) > 20  # the others are for other systems
    odd = {
        name: said
        for name, said in known.items()
        if said != OWN_WORDS.get(name)
        and (not FREE.search(said) or (BOUND.search(said) and " OR " not in said))
    }
    assert odd == {}


def test_importing_asks_nobody() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", QUIET], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_same_source_gives_the_same_wheel(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    kept = shutil.ignore_patterns("__pycache__", "*.mo", "*.toml.json")
    digests = []
    for number, name in enumerate(("one", "a-longer-name")):
        copy = tmp_path / name
        copy.mkdir()
        for item in ("src", "pyproject.toml", "README.md", "LICENSE", "build_resources.py"):
            source = ROOT / item
            if source.is_dir():
                shutil.copytree(source, copy / item, ignore=kept)
            else:
                shutil.copy(source, copy / item)
        for file in copy.rglob("*"):
            os.utime(file, (1_500_000_000 + number, 1_500_000_000 + number))
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(copy / "out")],
            cwd=copy,
            env={**os.environ, "TZ": ("UTC", "Asia/Seoul")[number], "PYTHONHASHSEED": str(number)},
            capture_output=True,
            check=True,
        )
        (wheel,) = (copy / "out").glob("*.whl")
        digests.append(hashlib.sha256(wheel.read_bytes()).hexdigest())
    assert digests[0] == digests[1]
    names = set(zipfile.ZipFile(wheel).namelist())
    tables = {name for name in names if name.endswith(".toml")}
    assert tables and {f"{name}.json" for name in tables} <= names
    assert "kinprint/text/catalogues/ko.mo" in names


def test_the_bill_of_materials_names_what_is_locked() -> None:
    found = document()
    assert json.dumps(found) == json.dumps(document())
    listed = {(one["name"], one["version"]) for one in found["components"]}
    assert listed == {(one.name, one.version) for one in locked()}
    assert len({one["bom-ref"] for one in found["components"]}) == len(found["components"])
    for one in found["components"]:
        assert one["purl"] == one["bom-ref"] and one["externalReferences"][0]["hashes"]
