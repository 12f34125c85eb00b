"""Which tensor lies in which shard, and what an index may not say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.errors import BadIndex
from kinprint.reader.formats import shard_index
from kinprint.reader.formats.shard_index import Promises, check_promises, parse_index
from kinprint.records import Header, TensorSpec

NAME = "model.safetensors.index.json"


def index_of(weight_map: object, **rest: object) -> bytes:
    return json.dumps({"weight_map": weight_map, **rest}).encode()


def refusal(raw: bytes) -> str:
    with pytest.raises(BadIndex) as caught:
        parse_index(NAME, raw)
    assert caught.value.fields["file"] == NAME
    return str(caught.value.fields["cause"])


def header(*names: str) -> Header:
    return Header("safetensors", tuple(TensorSpec(n, "F32", (), "s", 0, 4) for n in names))


@pytest.mark.parametrize("metadata", [{}, {"total_size": 4.0}, {"a:b": "c:d", "n": 1}])
def test_the_quick_way_and_the_careful_way_agree(
    metadata: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = index_of({"a.b": "x", "c:d": "y"}, metadata=metadata)
    assert shard_index._quick_content(raw) is not None
    found = parse_index(NAME, raw)
    monkeypatch.setattr(shard_index, "_quick_content", lambda raw: None)
    assert parse_index(NAME, raw) == found


def test_an_index_as_it_is_written() -> None:
    raw = index_of(
        {"a": "model-00002-of-00002.safetensors", "b": "model-00001-of-00002.safetensors"},
        metadata={"total_size": 16060522496, "total_parameters": 8030261248},
    )
    index = parse_index(NAME, raw)
    assert index.path == NAME
    assert index.weight_map["a"] == "model-00002-of-00002.safetensors"
    assert index.metadata["total_size"] == 16060522496
    assert index.metadata["total_parameters"] == 8030261248
    assert index.shards == {
        "model-00002-of-00002.safetensors": ("a",),
        "model-00001-of-00002.safetensors": ("b",),
    }


@pytest.mark.parametrize(
    ("path", "shard", "expected"),
    [
        ("model.safetensors.index.json", "x.safetensors", "x.safetensors"),
        ("unet/model.safetensors.index.json", "x.safetensors", "unet/x.safetensors"),
        ("a/b/pytorch_model.bin.index.json", "c/x.bin", "a/b/c/x.bin"),
        ("model.safetensors.index.json", "./x.safetensors", "x.safetensors"),
        ("model.safetensors.index.json", "x..y...safetensors", "x..y...safetensors"),
        ("model.safetensors.index.json", "모델 1.safetensors", "모델 1.safetensors"),
        ("model.safetensors.index.json", "100%.safetensors", "100%.safetensors"),
    ],
)
def test_shards_are_named_from_the_root(path: str, shard: str, expected: str) -> None:
    index = parse_index(path, index_of({"a": shard}))
    assert index.weight_map == {"a": expected}
    assert index.shards == {expected: ("a",)}


def test_two_spellings_of_a_shard_are_one() -> None:
    index = parse_index(NAME, index_of({"a": "x", "b": "y", "c": "./x"}))
    assert index.shards == {"x": ("a", "c"), "y": ("b",)}


@pytest.mark.parametrize(
    ("shard", "clause"),
    [
        ("../x", "climbs out"),
        ("a/../../x", "climbs out"),
        ("a/..", "climbs out"),
        ("..", "climbs out"),
        (".../x", "dots and blanks"),
        (".. /x", "dots and blanks"),
        ("a/. ./x", "dots and blanks"),
        ("a/ /x", "dots and blanks"),
        ("/etc/passwd", "absolute"),
        ("//host/share", "absolute"),
        ("..\\x", "backslash"),
        ("a\\b", "backslash"),
        ("C:/x", "colon"),
        ("c:x", "colon"),
        ("https://evil.example/x", "colon"),
        ("file:x", "colon"),
        ("%2e%2e/x", "percent-encoded"),
        ("%252e%252e/x", "percent-encoded"),
        ("a%2Fb", "percent-encoded"),
        ("x%00", "percent-encoded"),
        ("x\0", "control character"),
        ("x\n", "control character"),
        ("", "empty part"),
        ("a//b", "empty part"),
        ("a/", "empty part"),
        (".", "names no file"),
        ("./.", "names no file"),
        ("x" * 2000, "2,000 characters"),
    ],
)
def test_no_shard_lies_outside_the_repository(shard: str, clause: str) -> None:
    raw = index_of({"good": "model.safetensors", "bad": shard})
    assert clause in refusal(raw)
    assert len(refusal(raw)) < 300


@given(st.text(alphabet="./\\% :~ab2eEfFcC\0\n", max_size=12))
def test_whatever_is_accepted_stays_within(shard: str) -> None:
    try:
        index = parse_index("folder/index.json", index_of({"a": shard}))
    except BadIndex:
        return
    parts = index.weight_map["a"].split("/")
    assert parts[0] == "folder"
    assert all(part and part.strip(". ") for part in parts)
    assert not set("\\:\0\n") & set(shard)


@pytest.mark.parametrize(
    ("raw", "clause"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"version https://git-lfs.github.com/spec/v1", "not JSON"),
        (b"\xff\xfe{", "not UTF-8"),
        (b'\xef\xbb\xbf{"weight_map":{"a":"b"}}', "not JSON"),
        (b'{"weight_map":{"\\ud800":"b"}}', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "not a JSON object"),
        (b"{}", "no weight_map"),
        (b'{"weight_map":null}', "no weight_map"),
        (b'{"weight_map":[]}', "weight_map is not an object"),
        (b'{"weight_map":{}}', "weight_map is empty"),
        (b'{"weight_map":{"a":1}}', "no file name for tensor 'a'"),
        (b'{"weight_map":{"a":null}}', "no file name for tensor 'a'"),
        (b'{"weight_map":{"a":["b"]}}', "no file name for tensor 'a'"),
        (b'{"weight_map":{"a":"x","a":"y"}}', "names 'a' twice"),
        (b'{"weight_map":{"a":"x"},"weight_map":{"b":"y"}}', "names 'weight_map' twice"),
        (b'{"metadata":{},"weight_map":{"a":"x","a":"y"}}', "names 'a' twice"),
        (b'{"metadata":{"n":1,"n":1},"weight_map":{"a":"x"}}', "names 'n' twice"),
        (b'{"metadata":{},"metadata":{},"weight_map":{"a":"x"}}', "names 'metadata' twice"),
        (b'{"weight_map":{"a":"x"},"metadata":[]}', "metadata is not an object"),
        (b'{"weight_map":{"a":"x"},"metadata":{"total_size":-1}}', "no number of bytes"),
        (b'{"weight_map":{"a":"x"},"metadata":{"total_size":1e30}}', "no number of bytes"),
        (b'{"weight_map":{"a":"x"},"metadata":{"total_size":NaN}}', "no number of bytes"),
        (b'{"weight_map":{"a":"x"},"metadata":{"total_size":"9"}}', "not a number"),
        (b'{"weight_map":{"a":"x"},"metadata":{"total_size":true}}', "not a number"),
        (b'{"metadata":{"total_size":' + b"9" * 400 + b'},"weight_map":{"a":"x"}}', "no number"),
        (b" " * 100_000_001, "100,000,001 bytes"),
    ],
)
def test_each_fault_has_its_clause(raw: bytes, clause: str) -> None:
    assert clause in refusal(raw)


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"metadata": None},
        {"metadata": {}},
        {"metadata": {"total_size": 0}},
        {"metadata": {"total_size": 5723285472.5}},
    ],
)
def test_the_total_size_is_optional(rest: dict[str, object]) -> None:
    assert parse_index(NAME, index_of({"a": "x"}, **rest)).weight_map == {"a": "x"}


def test_kept_promises_and_tensors_beyond_them() -> None:
    index = parse_index(NAME, index_of({"a": "x", "b": "y", "c": "x"}))
    assert check_promises(index, "x", header("a", "c")) == Promises()
    assert check_promises(index, "x", header("z", "a", "b", "c")) == Promises((), ("z", "b"))
    assert check_promises(index, "not named", header("a")) == Promises((), ("a",))


def test_broken_promises_are_named() -> None:
    index = parse_index(NAME, index_of({"a": "x", "b": "x", "c": "x"}))
    assert check_promises(index, "x", header("a", "c")) == Promises(("b",))
    assert check_promises(index, "x", header("z")) == Promises(("a", "b", "c"), ("z",))
