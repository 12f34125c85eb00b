"""What the package imports and what it declares are the same; the version has one source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from kinprint.version import __version__

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
# A table for whoever has one of these: `to_frame` asks for them and says so where they are missing.
USED_WHERE_INSTALLED = {"pandas", "polars"}


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Top-level names of what is imported, and whether only when a function is called."""
    waiting = [(tree, False)]
    while waiting:
        node, deferred = waiting.pop()
        match node:
            case ast.Import(names=names):
                yield from ((one.name.partition(".")[0], deferred) for one in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0], deferred
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module.partition(".")[0], deferred
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                deferred = True
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                deferred = True
        waiting += [(child, deferred) for child in ast.iter_child_nodes(node)]


NOT_INSTALLED = {"cupy": "cupy-cuda12x"}
NEEDS_HARDWARE = {"gpu"}
"""Extras that some machines have no use for, and others no package."""


@cache
def third_party() -> set[tuple[str, bool]]:
    """What the package imports from elsewhere, outside the standard library."""
    return {
        (name, deferred)
        for file in (ROOT / "src").rglob("*.py")
        for name, deferred in imports(ast.parse(file.read_text("utf-8")))
        if name not in sys.stdlib_module_names and name != "kinprint"
    }


def distributions(requirements: Iterable[str]) -> set[str]:
    return {canonical(re.split(r"[<>=!~;\[ ]", one, maxsplit=1)[0]) for one in requirements}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def providers(module: str) -> set[str]:
    """The distributions that bring a module, by what is installed here."""
    known = _installed().get(module, [NOT_INSTALLED.get(module, module)])
    return {canonical(one) for one in known}


@cache
def _installed() -> Mapping[str, list[str]]:
    return packages_distributions()


def test_every_core_dependency_is_imported() -> None:
    brought = {one for module, _ in third_party() for one in providers(module)}
    assert distributions(PROJECT["dependencies"]) <= brought


def test_every_import_is_declared() -> None:
    core = distributions(PROJECT["dependencies"])
    extras = {
        name for one in PROJECT["optional-dependencies"].values() for name in distributions(one)
    }
    at_build = distributions(SETTINGS["build-system"]["requires"])
    on_demand = core | extras | at_build | USED_WHERE_INSTALLED
    for module, deferred in third_party():
        declared = on_demand if deferred else core
        assert providers(module) & declared, f"{module} is imported and not declared"


def test_all_means_all_extras() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    (named,) = re.findall(r"^kinprint\[(.*)\]$", everything)
    assert set(named.split(",")) == set(extras) - {"all"} - NEEDS_HARDWARE


def test_the_version_that_is_built_is_the_version_that_is_said() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == __version__
    assert "version" not in PROJECT and PROJECT["dynamic"] == ["version"]
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
