"""Compiles sentences and tables when a package is built, or installed from a checkout."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGE = Path(__file__).parent / "src" / "kinprint"


class Resources(BuildHookInterface[Any]):
    """The step before files are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile all catalogues and tables, with the modules that a checkout uses too."""
        _module(_PACKAGE / "text" / "compiling.py").compile_all()
        _module(_PACKAGE / "tables.py").compile_tables()


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
