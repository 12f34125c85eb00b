"""The texts and named arguments of our own code, for tests of what it says; parsed once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import kinprint

SOURCE = Path(kinprint.__file__).parent


@cache
def source_nodes() -> tuple[tuple[Path, ast.Constant | ast.JoinedStr | ast.keyword], ...]:
    """Every text, with fields or without, and every named argument, with its file."""
    return tuple(
        (path.relative_to(SOURCE), node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.JoinedStr | ast.keyword)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    )
