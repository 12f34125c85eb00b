"""Every parser of what strangers write, as a function of bytes that may only refuse.

A target gives back nothing. It may raise an error of the tree, as a user would be told it; anything
else, and whatever reaches beyond the bytes (a process, a connection, a file that is written), is a
fault of ours.
"""

from __future__ import annotations

import io
import json
import os
import struct
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import prod
from random import Random
from typing import Any

from msgspec import Struct

import kinprint.demo
from kinprint.atlas import encoding, store
from kinprint.atlas.keys import FIRST, SECOND
from kinprint.errors import InternalError, KinprintError, Malformed
from kinprint.lineage.about.claims import (
    adapter_claims,
    card_claims,
    config_claims,
    gguf_claims,
)
from kinprint.lineage.about.configuration import fields_of
from kinprint.model.adapters import parse_adapter
from kinprint.model.geometry import geometry_of
from kinprint.model.tokens.choice import has_vocabulary
from kinprint.model.tokens.gguf_vocabulary import vocabulary_of_gguf
from kinprint.model.tokens.loading import load_vocabulary
from kinprint.reader.formats.gguf.header import parse_gguf
from kinprint.reader.formats.safetensors import parse_safetensors
from kinprint.reader.formats.shard_index import check_names, parse_index
from kinprint.reader.formats.torch.archive import parse_torch
from kinprint.reader.formats.view import FileView
from kinprint.reader.jsonfile import parse_object
from kinprint.records import ByteRange, FileEntry, Header, TensorSpec
from kinprint.report.exports import render
from kinprint.report.outputs import decode_result
from kinprint.report.schema import (
    DiffDocument,
    IdentifyDocument,
    MatrixDocument,
    StudyDocument,
    TreeDocument,
    UnmergeDocument,
    decode,
)
from kinprint.report.views.html.identify import identify_page
from kinprint.report.views.html.tree import tree_page
from kinprint.report.views.html.unmerge import unmerge_page
from kinprint.report.views.terminal.comparison import comparison_lines, matrix_lines
from kinprint.report.views.terminal.diff import diff_lines
from kinprint.report.views.terminal.identify import identify_lines
from kinprint.report.views.terminal.study import study_lines
from kinprint.report.views.terminal.tree import tree_lines
from kinprint.report.views.terminal.unmerge import unmerge_lines
from kinprint.source.recorded import RecordedSource
from tests.fuzz.whole_model import framed, open_and_read
from tests.reader.formats.gguf import builder as gguf
from tests.reader.formats.torch import builder as torch

_ZOO = kinprint.demo.FOLDER / "zoo"
_FORBIDDEN = (
    "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "socket.connect",
    "pickle.find_class", "os.remove", "os.rename", "os.mkdir",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_VOCABULARIES = ("vocab.json", "vocab.txt", "tekken.json", "a.tiktoken")
_BESIDE = ("tokenizer_config.json", "added_tokens.json", "merges.txt")
_ROWS = [(0, "config.json", 0, b"{}"), (0, "m.safetensors", 8, bytes(8))]


class Target(Struct, frozen=True):
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


def _gguf_file(raw: bytes) -> None:
    _weights(parse_gguf, "m.gguf")(raw)
    metadata = parse_gguf(_view(raw, "m.gguf")).metadata
    geometry_of({}, metadata)
    gguf_claims(metadata, "m.gguf")
    if has_vocabulary(metadata):
        vocabulary_of_gguf("m.gguf", metadata)


def _in_archive(raw: bytes) -> None:
    archive = torch.zip_archive(torch.entries_of(raw, {"0": bytes(40), "1": bytes(400)}))
    _weights(parse_torch, "m.bin")(archive)


def _vocabulary(raw: bytes) -> None:
    """The first byte chooses the name."""
    name = _VOCABULARIES[(raw or b"\0")[0] % len(_VOCABULARIES)]
    load_vocabulary(name, raw[1:])


def _beside_vocabulary(raw: bytes) -> None:
    name = _BESIDE[(raw or b"\0")[0] % len(_BESIDE)]
    load_vocabulary("vocab.json", b'{"a": 0, "b": 1, "ab": 2}', {name: raw[1:]})


def _shown(raw: bytes) -> None:
    """A document in every form that draws nothing."""
    document = decode_result(raw)
    if isinstance(document, StudyDocument):
        list(study_lines(document, "en"))
        return
    if isinstance(document, UnmergeDocument):
        list(unmerge_lines(document, "en"))
        unmerge_page(document)
        return
    if isinstance(document, IdentifyDocument):
        list(identify_lines(document, "en"))
        identify_page(document)
        return
    if isinstance(document, TreeDocument):
        list(tree_lines(document, "en"))
        tree_page(document)
        return
    for form in (".html", ".md", ".csv"):
        render(document, form)
    if isinstance(document, MatrixDocument):
        list(matrix_lines(document, "en"))
    elif isinstance(document, DiffDocument):
        list(diff_lines(document, "en"))
    else:
        list(comparison_lines(document, "en"))


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


def _parquet(raw: bytes) -> None:
    """A file of an atlas, under the name that it should have."""
    table = store._read_index(raw)
    if table is not None:
        store._joined([table], set(table.column("id").to_pylist())).entries()
    name = "0" * 64
    with suppress(Exception):
        about = encoding._said(io.BytesIO(raw), name, "atlas")
        name = encoding._digest(about, encoding._read_rows(raw))
    with suppress(KinprintError):
        encoding.keys_in(io.BytesIO(raw), name, "atlas")
    _use_fingerprint(raw, name)


def _fingerprint(raw: bytes) -> None:
    """What a file of an atlas says about its model."""
    table = encoding._table(_ROWS).replace_schema_metadata({b"kinprint": raw})
    _use_fingerprint(encoding.written(table), encoding._digest(raw, _ROWS))


def _use_fingerprint(raw: bytes, name: str) -> None:
    one = encoding.decoded(raw, name, "atlas")
    store._index_table([(name, one)])
    again, file = encoding.encoded(one)
    assert encoding.decoded(file, again, "atlas").sources == one.sources
    for recorded in one.sources:
        source = RecordedSource(recorded)
        for entry in source.files():
            with suppress(KinprintError):
                source.read(entry.path, ByteRange(0, min(entry.size, 1000)))


def _said_of_a_model() -> bytes:
    """What the file of a fingerprint says about its model."""
    keys = [{"tower": "text", "width": 8, "depth": 1,
             "first": b64encode(bytes(sum(FIRST))).decode(),
             "second": b64encode(bytes(sum(SECOND))).decode()}]  # fmt: skip
    ref = {"given": "a/b", "kind": "hub", "name": "a/b", "commit": "0" * 40, "path": ""}
    files = [{"path": "config.json", "size": 2}, {"path": "m.safetensors", "size": 99}]
    about = {"schema": encoding.SCHEMA, "seed": 0, "architecture": "A", "config": "0" * 64,
             "tokenizer": "", "claims": [{"where": "README.md: base_model", "model": "a/c"}],
             "towers": keys, "sources": [{"given": "a/b", "ref": ref, "files": files,
             "history": [{"id": "0" * 40, "date": "2026-01-01", "title": ""}]}]}  # fmt: skip
    return json.dumps(about).encode()


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


def _model() -> bytes:
    """A configuration and a header with a plain, a fused and a quantised weight."""
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8,
              "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1,
              "num_hidden_layers": 1, "vocab_size": 4, "quantization_config":
              {"quant_method": "gptq", "bits": 4, "group_size": 8}}  # fmt: skip
    shapes = {
        "model.embed_tokens.weight": ("F32", [4, 8]),
        "model.norm.weight": ("F32", [8]),
        "model.layers.0.self_attn.qkv_proj.weight": ("BF16", [16, 8]),
        "model.layers.0.mlp.up_proj.qweight": ("I32", [1, 16]),
        "model.layers.0.mlp.up_proj.qzeros": ("I32", [1, 2]),
        "model.layers.0.mlp.up_proj.scales": ("F16", [1, 16]),
        "model.layers.0.mlp.up_proj.g_idx": ("I32", [8]),
    }
    header: dict[str, object] = {}
    at = 0
    for name, (dtype, shape) in shapes.items():
        size = prod(shape) * (4 if dtype.endswith("32") else 2)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return b"\n".join((json.dumps(config).encode(), json.dumps(header).encode(), bytes(at)))


def _shortened(value: Any) -> Any:
    """A document with two entries of each list: good, and short."""
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items()}
    return [_shortened(each) for each in value[:2]] if isinstance(value, list) else value


def targets() -> Mapping[str, Target]:
    """All of them, by name."""
    index = b'{"metadata": {"total_size": 8}, "weight_map": {"a.w": "x-00001-of-00001.bin"}}'
    adapter = b'{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "base_model_name_or_path": "a/b"}'
    card = b"---\nbase_model:\n- org/base\nbase_model_relation: finetune\ntags: [x]\n---\n# A\n"
    tokens = {"version": "1.0", "added_tokens": [{"id": 2, "content": "<s>", "special": True}],
              "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}}  # fmt: skip
    config = (_ZOO / "base-a/config.json").read_bytes()
    report = (_ZOO.parents[3] / "docs/reports/derived.json").read_bytes()
    result = json.dumps(_shortened(json.loads(report))).encode()
    whole = _safetensors()
    said = _said_of_a_model()
    table = encoding._table(_ROWS).replace_schema_metadata({b"kinprint": said})
    name, file = encoding._digest(said, _ROWS), encoding.written(table)
    rows = store._index_table([(name, encoding.decoded(file, name, "atlas"))])
    return {
        "safetensors": Target(_weights(parse_safetensors, "m.safetensors"), (whole,)),
        "header": Target(
            lambda raw: _weights(parse_safetensors, "m.safetensors")(framed(raw)), (whole[8:-16],)
        ),
        "index": Target(lambda raw: parse_index("i.json", raw), (index,)),
        "gguf": Target(_gguf_file, (_gguf(),)),
        "torch": Target(_weights(parse_torch, "m.bin"), _torch()),
        "pickle": Target(_in_archive, (torch.pickle(torch.dict_of({"w": torch.vector("0", 10)})),)),
        "tokenizer.json": Target(
            lambda raw: load_vocabulary("tokenizer.json", raw), (json.dumps(tokens).encode(),)
        ),
        "tokenizer.model": Target(
            lambda raw: load_vocabulary("tokenizer.model", raw),
            (b"IQ== 0\nIg== 1\n", b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02"),
        ),
        "vocabulary": Target(
            _vocabulary,
            (
                b'\0{"a": 0, "b": 1}',
                b"\1[PAD]\na\n##b\n",
                b'\2{"config": {"default_vocab_size": 3, "default_num_special_tokens": 2},'
                b' "vocab": [{"rank": 0, "token_bytes": "YQ=="}]}',
                b"\3IQ== 0\nIg== 1\n",
            ),
        ),
        "tokenizer-settings": Target(
            _beside_vocabulary,
            (
                b'\0{"added_tokens_decoder": {"3": {"content": "<s>", "special": true}},'
                b' "bos_token": "<s>", "additional_special_tokens": ["<s>"]}',
                b'\1{"<s>": 3}',
                b"\2#version: 0.2\na b\n",
            ),
        ),
        "config": Target(_configuration, (adapter, config)),
        "adapter": Target(_adapter, (adapter,)),
        "card": Target(card_claims, (card,)),
        "model": Target(open_and_read, (_model(),)),
        "parquet": Target(_parquet, (encoding.written(rows), file)),
        "fingerprint": Target(_fingerprint, (_said_of_a_model(),)),
        "result": Target(decode, (result,)),
        "shown": Target(_shown, (result,)),
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
_cache: str | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching or (_cache is not None and _reaches_the_cache(event, arguments)):
        return
    if event.startswith(_FORBIDDEN):
        raise AssertionError(f"a parser did {event} {arguments!r:.200}")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        raise AssertionError(f"a parser wrote {arguments[0]!r}")


def _reaches_the_cache(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether it connects, or changes a file of the cache, one that is open already included."""
    if event == "socket.connect":
        return True
    place = arguments[0] if arguments else None
    return isinstance(place, int) or str(place).startswith(str(_cache))


@contextmanager
def watched(cache: str | None = None) -> Iterator[None]:
    """Within this block nothing may be run, connected to or written.

    With the folder of a cache one may connect, and write there.
    """
    global _watching, _hooked, _cache
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    _watching, _cache = True, cache
    try:
        yield
    finally:
        _watching, _cache = False, None


ODD = (
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
                raw[at : at + length] = draw.choice(ODD)
            case 2:
                del raw[at : at + max(1, length)]
            case 3:
                raw[at:at] = raw[at : at + 64] * draw.choice((1, 2, 50))
            case 4:
                raw[at : at + 8] = draw.getrandbits(64).to_bytes(8, "little")[: max(1, length)]
            case _:
                raw = raw[: draw.randrange(len(raw) + 1)]
    return bytes(raw)
