"""Compiles the catalogues of sentences when a package is built, or installed from a checkout."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_COMPILING = Path(__file__).parent / "src" / "kinprint" / "text" / "compiling.py"


class Catalogues(BuildHookInterface[Any]):
    """The step before files are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile all catalogues, with the module that a checkout uses too."""
        spec = importlib.util.spec_from_file_location("compiling", _COMPILING)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.compile_all()
