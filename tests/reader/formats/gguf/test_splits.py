"""Split models: names of the parts, and parts that do not belong together."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from kinprint.errors import BadGguf
from kinprint.reader.formats.gguf.header import parse_gguf
from kinprint.reader.formats.gguf.splits import check_splits, split_siblings
from kinprint.records import Header, TensorSpec
from tests.reader.formats.gguf.builder import Recorder


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("m-00001-of-00005.gguf", (1, 5, "m")),
        ("q4/Model-Q4_K-00012-of-00012.gguf", (12, 12, "q4/Model-Q4_K")),
        ("m-00001-of-00001.gguf", (1, 1, "m")),
        ("m.gguf", None),
        ("m-00000-of-00005.gguf", None),
        ("m-00006-of-00005.gguf", None),
        ("m-1-of-5.gguf", None),
        ("m-00001-of-00005.safetensors", None),
        ("m-00001-of-00005.gguf.part", None),
        ("-00001-of-00002.gguf", None),
        ("m-٠٠٠٠١-of-٠٠٠٠٢.gguf", None),
    ],
)
def test_names_of_parts(path: str, parts: tuple[int, int, str] | None) -> None:
    assert split_siblings(path) == parts


def part(number: int, count: int, total: int, *tensors: str, no: int | None = None) -> Header:
    return Header(
        "gguf",
        tuple(TensorSpec(name, "F32", (1,), f"{number}", 0, 4) for name in tensors),
        {
            "split.no": number if no is None else no,
            "split.count": count,
            "split.tensors.count": total,
        },
    )


def test_parts_that_the_package_wrote_fit(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama", split_max_tensors=2)
    for index in range(5):
        writer.add_tensor(f"t{index}", np.full(4, index, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [split_siblings(name) for name in names] == [(n, 3, "m") for n in (1, 2, 3)]
    headers = {
        name: parse_gguf(Recorder((tmp_path / name).read_bytes(), name).view) for name in names
    }
    check_splits(headers)
    headers.pop(names[1])
    with pytest.raises(BadGguf, match="3 parts, and there are 2"):
        check_splits(headers)


def test_whole_files_fit() -> None:
    check_splits({})
    check_splits({"m.gguf": Header("gguf", ())})
    check_splits({"m.gguf": part(0, 1, 1, "a")})
    check_splits({"m.gguf": part(0, 0, 1, "a")})


REFUSED = {
    "other count": ({"a": part(0, 2, 2, "x"), "b": part(1, 3, 2, "y")}, "another number of parts"),
    "other total": ({"a": part(0, 2, 2, "x"), "b": part(1, 2, 3, "y")}, "another number of parts"),
    "no keys": ({"a": Header("gguf", ()), "b": part(1, 2, 2, "y")}, "lacks 'split.count'"),
    "text": (
        {"a": Header("gguf", (), {"split.count": "2"}), "b": part(1, 2, 2)},
        "lacks 'split.count'",
    ),
    "same part": ({"a": part(0, 2, 2, "x"), "b": part(0, 2, 2, "y")}, "part 1, as 'a' does"),
    "part 3 of 2": ({"a": part(0, 2, 2, "x"), "b": part(2, 2, 2, "y")}, "part 3 of 2"),
    "negative": ({"a": part(0, 2, 2, "x"), "b": part(1, 2, 2, no=-1)}, "lacks 'split.no'"),
    "same tensor": ({"a": part(0, 2, 2, "x"), "b": part(1, 2, 2, "x")}, "'x' stands in 'a' too"),
    "missing tensors": ({"a": part(0, 2, 3, "x"), "b": part(1, 2, 3, "y")}, "have 3 tensors"),
    "renamed": (
        {
            "m-00001-of-00002.gguf": part(1, 2, 2, "x"),
            "m-00002-of-00002.gguf": part(0, 2, 2, "y"),
        },
        "its name disagrees",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_parts_that_do_not_fit(name: str) -> None:
    headers, reason = REFUSED[name]
    with pytest.raises(BadGguf) as caught:
        check_splits(headers)
    assert reason in str(caught.value.fields["cause"])
