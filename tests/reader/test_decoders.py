"""Structs that threads decode have a decoder that was made when the module was imported.

msgspec describes a struct when it decodes the first one, and two threads that do that at the same
moment crash the interpreter (msgspec 0.22). Models are opened in threads.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kinprint

PACKAGE = Path(kinprint.__file__).parent
BUILTINS = {"dict", "list", "tuple", "str", "int", "float", "bool", "None", "Any"}


@pytest.mark.parametrize("room", ["source", "reader", "model"])
def test_no_struct_is_described_in_a_thread(room: str) -> None:
    for file in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "msgspec.json.decode":
                for keyword in node.keywords:
                    names = {one.id for one in ast.walk(keyword.value) if isinstance(one, ast.Name)}
                    assert names <= BUILTINS, f"{file.name}: make a Decoder of {names - BUILTINS}"
