"""Attacks that are known from collections of others, rebuilt here: see tests/README.md."""

from __future__ import annotations

import itertools

import pytest

from kinprint.errors import BadArchive, BadGguf, BadHeader, BadPickle
from kinprint.reader.formats.gguf.header import parse_gguf
from kinprint.reader.formats.safetensors import parse_safetensors
from kinprint.reader.formats.torch.archive import parse_torch
from kinprint.reader.formats.view import FileView
from kinprint.records import FileEntry
from tests.fuzz.targets import watched
from tests.reader.formats.gguf import builder as gguf
from tests.reader.formats.torch import builder as torch

# What scanners of pickles call dangerous: names that run, load, fetch, write or fetch names.
NAMES = (
    "builtins eval", "builtins exec", "builtins compile", "builtins open", "builtins getattr",
    "builtins __import__", "builtins apply", "__builtin__ eval", "__builtin__ globals",
    "posix system", "nt system", "os system", "os popen", "os execve", "subprocess run",
    "subprocess Popen", "sys exit", "socket create_connection", "http.client HTTPSConnection",
    "httplib HTTPSConnection", "requests.api get", "aiohttp.client ClientSession",
    "webbrowser open", "pickle loads", "_pickle loads", "cPickle loads", "marshal loads",
    "runpy _run_code", "shutil rmtree", "operator attrgetter", "operator methodcaller",
    "functools partial", "importlib import_module", "ctypes CDLL",
    "code InteractiveInterpreter", "bdb Bdb", "pdb Pdb",
    "asyncio.unix_events _UnixSubprocessTransport.start", "timeit timeit", "pty spawn",
    "numpy.testing._private.utils runstring", "torch.hub load", "torch load", "torch.jit load",
    "torch._utils _rebuild_tensor_v2.__globals__", "torch.serialization load",
    "collections OrderedDict.__class__", "pydoc pipepager", "venv create", "pip main",
)  # fmt: skip
ARGUMENT = torch.text("echo pwned")
VECTOR = [gguf.tensor("w", [4])]


def forms(module: str, name: str) -> dict[str, bytes]:
    """A call of a name, by each instruction that can make one."""
    named = f"{module}\n{name}\n".encode()
    asked = torch.text(module) + torch.text(name) + b"\x93"
    return {
        "REDUCE": b"c" + named + ARGUMENT + b"\x85R",
        "STACK_GLOBAL": asked + ARGUMENT + b"\x85R",
        "INST": b"(" + ARGUMENT + b"i" + named,
        "OBJ": b"(c" + named + ARGUMENT + b"o",
        "NEWOBJ": b"c" + named + ARGUMENT + b"\x85\x81",
        "BUILD": b"c" + named + b")\x81}" + ARGUMENT + ARGUMENT + b"sb",
        "named alone": b"c" + named,
    }


def view(raw: bytes, path: str) -> FileView:
    return FileView(FileEntry(path, len(raw)), lambda start, stop: raw[start:stop])


@pytest.mark.parametrize("name", NAMES)
def test_dangerous_names_are_refused_in_every_form(name: str) -> None:
    module, _, attribute = name.partition(" ")
    for form, call in forms(module, attribute).items():
        inside = torch.dict_of([(torch.text("w"), call)])
        before = call + b"0" + torch.dict_of({"w": torch.vector("0", 10)})
        for body in (call, inside, before):
            for raw in (
                torch.torch_zip(body, {"0": bytes(40)}),
                torch.torch_legacy(body, {"0": (10, bytes(40))}),
                torch.pickle(body),
            ):
                with watched(), pytest.raises((BadPickle, BadArchive)):
                    parse_torch(view(raw, f"{form}.bin"))


def test_harmless_things_before_a_harmful_one_do_not_hide_it() -> None:
    good = torch.dict_of({"w": torch.vector("0", 10)})
    bad = forms("os", "system")["REDUCE"]
    for first, second in itertools.permutations((good, bad)):
        raw = torch.pickle(first) + torch.pickle(second)
        with watched(), pytest.raises((BadPickle, BadArchive)):
            parse_torch(view(raw, "two.bin"))


def test_other_files_with_the_ending_of_weights_are_refused() -> None:
    locked = bytearray(
        torch.torch_zip(torch.dict_of({"w": torch.vector("0", 10)}), {"0": bytes(40)})
    )
    for at in range(len(locked) - 4):
        if locked[at : at + 4] == b"PK\x03\x04":
            locked[at + 6] |= 1  # encrypted, as the entry says of itself
        elif locked[at : at + 4] == b"PK\x01\x02":
            locked[at + 8] |= 1
    for raw in (
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"7z\xbc\xaf\x27\x1c" + bytes(100),
        bytes(locked),
    ):
        with pytest.raises((BadArchive, BadPickle)):
            parse_torch(view(raw, "model.pt"))


@pytest.mark.parametrize(
    "raw",
    [
        gguf.gguf([gguf.pair("a", 4, bytes(4))], counts=(2**64 - 1, 1)),
        gguf.gguf([gguf.pair("a", 4, bytes(4))], counts=(0, 2**64 - 1)),
        b"GGUF\x03\0\0\0" + bytes(8) + b"\x01" + bytes(7) + b"\xff" * 8 + b"key",
        gguf.gguf([gguf.pair("general.alignment", 5, b"\x20\0\0\0")], VECTOR, bytes(16)),
        gguf.gguf([gguf.pair("general.alignment", 4, b"\x0d\0\0\0")], VECTOR, bytes(16)),
        gguf.gguf([], [gguf.tensor(name, [2**63 - 64], 24) for name in "wv"], bytes(64)),
        gguf.gguf([], [gguf.tensor("w", [4], offset=1)], bytes(64)),
        gguf.gguf([], [gguf.tensor("w", [4]), gguf.tensor("w", [4], offset=32)], bytes(64)),
    ],
    ids=["tensors", "pairs", "key", "aligned by", "alignment", "sizes", "offset", "name"],
)
def test_files_made_by_hand_are_refused(raw: bytes) -> None:
    with pytest.raises(BadGguf):
        parse_gguf(view(raw, "m.gguf"))


def test_abuse_of_a_header_is_refused() -> None:
    entry = b'"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]'
    headers = (
        b'{"a":{' + entry % (4, 0, 16) + b'},"b":{' + entry % (4, 0, 16) + b"}}",  # one place twice
        b'{"a":{' + entry % (2**62, 0, 16) + b"}}",  # a shape without its bytes
        b'{"a":{' + entry % (4, 16, 32) + b"}}",  # a hole at the start
        b" " * 1000,
    )
    for header in headers:
        raw = len(header).to_bytes(8, "little") + header + bytes(16)
        with pytest.raises(BadHeader):
            parse_safetensors(view(raw, "m.safetensors"))
    with pytest.raises(BadHeader):
        parse_safetensors(view(b"\xff" * 8 + b"{}", "m.safetensors"))
