"""Every parser of what strangers write, as a function of bytes that may only refuse.

A target gives back nothing. It may raise an error of the tree, as a user would be told it; anything
else, and whatever reaches beyond the bytes (a process, a connection, a file that is written), is a
fault of ours.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random

import kinprint.demo
from kinprint.errors import InternalError, KinprintError, Malformed
from kinprint.lineage.about.claims import adapter_claims, card_claims, config_claims
from kinprint.lineage.about.configuration import fields_of
from kinprint.model.adapters import parse_adapter
from kinprint.model.geometry import geometry_of
from kinprint.model.tokens.loading import load_vocabulary
from kinprint.reader.formats.gguf.header import parse_gguf
from kinprint.reader.formats.safetensors import parse_safetensors
from kinprint.reader.formats.shard_index import check_names, parse_index
from kinprint.reader.formats.torch.archive import parse_torch
from kinprint.reader.formats.view import FileView
from kinprint.reader.jsonfile import parse_object
from kinprint.records import FileEntry, Header, TensorSpec
from kinprint.report.schema import decode
from tests.reader.formats.gguf import builder as gguf
from tests.reader.formats.torch import builder as torch

_ZOO = kinprint.demo.FOLDER / "zoo"
_FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect",
    "pickle.find_class", "os.remove", "os.rename", "os.mkdir",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A parser and good files for it, from which bad ones are made."""

    parse: Callable[[bytes], object]
    seeds: tuple[bytes, ...]


def _view(raw: bytes, path: str) -> FileView:
    return FileView(FileEntry(path, len(raw)), lambda start, stop: raw[start:stop])


def _weights(parse: Callable[[FileView], Header], path: str) -> Callable[[bytes], object]:
    def run(raw: bytes) -> None:
        header = parse(_view(raw, path))
        check_names(path, (spec.name for spec in header.tensors))
        for spec in header.tensors:
            assert 0 <= spec.offset <= spec.offset + spec.nbytes <= len(raw), spec

    return run


def _configuration(raw: bytes) -> None:
    config = parse_object("config.json", raw)
    geometry_of(config)
    fields_of(config, None)
    config_claims(config, ("a/b",), "config.json")
    adapter_claims(config, "adapter_config.json")


def _adapter(raw: bytes) -> None:
    config = parse_object("adapter_config.json", raw)
    specs = {
        f"base_model.model.layers.0.q_proj.lora_{side}.weight": TensorSpec(
            f"base_model.model.layers.0.q_proj.lora_{side}.weight", "F32", shape, "a", 0, 64
        )
        for side, shape in (("A", (2, 8)), ("B", (8, 2)))
    }
    parse_adapter(config, specs)


def _safetensors() -> bytes:
    entry = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "w": entry}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(16)


def _gguf() -> bytes:
    words = gguf.array(8, 2, gguf.text("a") + gguf.text("b"))
    pairs = [gguf.pair("general.architecture", 8, gguf.text("llama")), gguf.pair("t", 9, words)]
    return gguf.gguf(pairs, [gguf.tensor("blk.0.attn_q.weight", [4, 4])], bytes(64))


def _torch() -> tuple[bytes, ...]:
    state = torch.dict_of({"layers.0.w": torch.vector("0", 10)})
    return torch.torch_zip(state, {"0": bytes(40)}), torch.torch_legacy(
        torch.dict_of({"w": torch.old_vector("0", 10)}), {"0": (10, bytes(40))}
    )


def _file(path: str, most: int = 1 << 30) -> bytes:
    return (_ZOO / path).read_bytes()[:most]


def targets() -> Mapping[str, Target]:
    """All of them, by name."""
    index = b'{"metadata": {"total_size": 8}, "weight_map": {"a.w": "x-00001-of-00001.bin"}}'
    adapter = b'{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": "a/b"}'
    card = b"---\nbase_model:\n- org/base\nbase_model_relation: finetune\ntags: [x]\n---\n# A\n"
    tokens = {"version": "1.0", "added_tokens": [{"id": 2, "content": "<s>", "special": True}],
              "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}}  # fmt: skip
    result = (_ZOO.parents[3] / "docs/reports/derived.json").read_bytes()
    return {
        "safetensors": Target(_weights(parse_safetensors, "m.safetensors"), (_safetensors(),)),
        "index": Target(lambda raw: parse_index("i.json", raw), (index,)),
        "gguf": Target(_weights(parse_gguf, "m.gguf"), (_gguf(),)),
        "torch": Target(_weights(parse_torch, "m.bin"), _torch()),
        "tokenizer.json": Target(
            lambda raw: load_vocabulary("tokenizer.json", raw), (json.dumps(tokens).encode(),)
        ),
        "vocab.json": Target(
            lambda raw: load_vocabulary("vocab.json", raw), (b'{"a": 0, "b": 1}',)
        ),
        "tokenizer.model": Target(
            lambda raw: load_vocabulary("tokenizer.model", raw),
            (b"\x0a\x0b\x0a\x05<unk>\x15\0\0\0\0\x18\x02", b"IQ== 0\nIg== 1\n"),
        ),
        "config": Target(_configuration, (_file("base-a/config.json"), adapter)),
        "adapter": Target(_adapter, (adapter,)),
        "card": Target(card_claims, (card,)),
        "result": Target(decode, (result[:200_000], result)),
    }


def tried(target: Target, raw: bytes) -> str | None:
    """Parse bytes; what went wrong beyond a refusal, if anything did."""
    try:
        with watched(), suppress(Malformed):
            target.parse(raw)
    except InternalError as error:
        return f"InternalError: {error}"
    except KinprintError as error:
        str(error)
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


_watching = False
_hooked = False


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if not _watching:
        return
    if event.startswith(_FORBIDDEN):
        raise AssertionError(f"a parser did {event} {arguments!r:.200}")
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise AssertionError(f"a parser wrote {arguments[0]!r}")


@contextmanager
def watched() -> Iterator[None]:
    """Within this block nothing may be run, connected to or written."""
    global _watching, _hooked
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    _watching = True
    try:
        yield
    finally:
        _watching = False


_ODD = (
    b"\x00", b"\xff", b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7), b"{", b"[" * 50, b'"',
    b"\\u0000", b"\\ud800", b"1e999", b"-1", b"18446744073709551616", b"../", b"/etc/passwd",
    b"http://127.0.0.1:9/", b"NaN", b"cos\nsystem\n(S'x'\ntR.", b"\x80\x04\x95", b"}" * 5,
)  # fmt: skip


def mutated(seed: bytes, draw: Random) -> bytes:
    """A good file, damaged in a few places."""
    raw = bytearray(seed)
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        at = (
            draw.randrange(len(raw) + 1)
            if draw.random() < 0.5
            else min(draw.randrange(64), len(raw))
        )
        length = draw.choice((0, 1, 1, 2, 4, 8, 64))
        match draw.randrange(6):
            case 0 if at < len(raw):
                raw[at] ^= 1 << draw.randrange(8)
            case 1:
                raw[at : at + length] = draw.choice(_ODD)
            case 2:
                del raw[at : at + max(1, length)]
            case 3:
                raw[at:at] = raw[at : at + 64] * draw.choice((1, 2, 50))
            case 4:
                raw[at : at + 8] = draw.getrandbits(64).to_bytes(8, "little")[: max(1, length)]
            case _:
                raw = raw[: draw.randrange(len(raw) + 1)]
    return bytes(raw)
