"""Damaged and malicious PyTorch files: refused with a reason, and never by surprise."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile

import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from kinprint.errors import BadArchive, BadPickle, KinprintError
from kinprint.reader.formats.torch.archive import parse_torch
from kinprint.records import Header
from tests.examples import few_and_many
from tests.reader.formats.gguf.builder import Recorder
from tests.reader.formats.torch import builder as build
from tests.work import at_most

RAW = b"\0" * 40
W = build.vector("0", 10)


def parsed(data: bytes, size: int | None = None) -> Header:
    return parse_torch(Recorder(data, "m.pt", size).view)


def zipped(body: bytes, **more: bytes) -> bytes:
    return build.torch_zip(body, {"0": RAW}, more)


def one(stored: bytes, *layout: object) -> bytes:
    return build.dict_of({"w": build.tensor(stored, *layout)})  # type: ignore[arg-type]


def foreign(method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for path, raw in build.entries_of(build.pickle(build.dict_of({"w": W})), {"0": RAW}):
            archive.writestr(path, raw)
    return buffer.getvalue()


def entries(*more: tuple[str, bytes]) -> bytes:
    return build.zip_archive(
        [*build.entries_of(build.pickle(build.dict_of({"w": W})), {"0": RAW}), *more]
    )


def tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("storages"))
    return buffer.getvalue()


def wrong(data: bytes, old: bytes, new: bytes, last: bool = False) -> bytes:
    place = data.rindex(old) if last else data.index(old)
    return data[:place] + new + data[place + len(old) :]


F = build.storage("FloatStorage", "0", 10)
OLD = build.storage("FloatStorage", "0", 10, build.NONE)
GOOD = zipped(build.dict_of({"w": W}))
GOOD_OLD = build.torch_legacy(one(OLD, [10], [1]), {"0": (10, RAW)})
REFUSED = {
    "empty": (b"", "neither"),
    "text": (b"hello", "neither"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
    "tar": (tar(), "tar file"),
    "no directory": (b"PK\3\4" + b"\0" * 100, "directory is damaged"),
    "empty zip": (b"PK\5\6" + b"\0" * 18, "without the 'data.pkl'"),
    "another zip": (build.zip_archive([("readme.txt", b"x")]), "without the 'data.pkl'"),
    "two pickles": (entries(("other/data.pkl", b"N.")), "without the 'data.pkl'"),
    "same entry": (entries(("archive/data/0", RAW)), "same name"),
    "compressed": (foreign(zipfile.ZIP_DEFLATED), "compressed"),
    "big-endian": (zipped(build.dict_of({"w": W}), byteorder=b"big"), "big-endian"),
    "odd alignment": (
        zipped(build.dict_of({"w": W}), **{".storage_alignment": b"x"}),
        "no number",
    ),
    "no alignment": (zipped(build.dict_of({"w": W}), **{".storage_alignment": b"0"}), "no number"),
    "missing storage": (zipped(build.dict_of({"w": build.vector("1", 10)})), "'1' of tensor 'w'"),
    "path as a key": (zipped(build.dict_of({"w": build.vector("../0", 10)})), "is not in it"),
    "numbers that are not there": (
        zipped(one(build.storage("FloatStorage", "0", 11), [10], [1])),
        "should have 44 bytes, and has 40",
    ),
    "a lie of exabytes": (
        zipped(one(build.storage("FloatStorage", "0", 2**60), [2**60], [1])),
        "and has 40",
    ),
    "too long": (zipped(one(F, [11], [1])), "beyond its storage"),
    "offset outside": (zipped(one(F, [1], [1], 10)), "beyond its storage"),
    "strides outside": (zipped(one(F, [2, 2], [9, 1])), "beyond its storage"),
    "huge strides": (zipped(one(F, [2, 2], [2**61, 2**61])), "beyond its storage"),
    "wrong type": (
        zipped(
            build.dict_of(
                {
                    "w": build.tensor_v3(
                        build.storage("UntypedStorage", "0", 40), [6], [1], "float64"
                    )
                }
            )
        ),
        "beyond its storage",
    ),
    "repeated for ever": (zipped(one(F, [2**40, 10], [0, 1])), "makes"),
    "no dictionary": (zipped(build.list_of(W)), "no dictionary"),
    "a tensor alone": (zipped(W), "no dictionary"),
    "no tensors": (zipped(build.dict_of({"epoch": b"K\1"})), "no named tensors"),
    "same names": (
        zipped(build.dict_of({"a": build.dict_of({"b": W}), "a.b": W})),
        "the same name",
    ),
    "endless name": (zipped(build.dict_of({"a" * 5000: W})), "absurd length"),
    "TorchScript": (
        build.torch_zip(build.name("__torch__", "Net"), {}, {"code/__torch__.py": b"x"}),
        "TorchScript",
    ),
    "damaged pickle": (wrong(GOOD, b"_rebuild", b"_rebuilt"), "'data.pkl' is damaged"),
    "another name": (wrong(GOOD, b"archive/data/0", b"archive/data/9"), "header of its entry"),
    "directory outside": (wrong(GOOD, b"PK\1\2", b"PK\1\3"), "directory is damaged"),
    "old, no magic": (build.torch_legacy(one(OLD, [1], [1]), {}, magic=b"K\1"), "not one that"),
    "old, protocol": (build.torch_legacy(one(OLD, [1], [1]), {}, protocol=1000), "unknown version"),
    "old, big-endian": (
        build.torch_legacy(one(OLD, [1], [1]), {}, little=build.FALSE),
        "big-endian",
    ),
    "old, cut": (GOOD_OLD[:-1], "should end at byte"),
    "old, more": (GOOD_OLD + b"\0", "should end at byte"),
    "old, other size": (
        build.torch_legacy(one(OLD, [10], [1]), {"0": (9, RAW)}),
        "another size",
    ),
    "old, unknown storage": (
        build.torch_legacy(one(OLD, [10], [1]), {"0": (10, RAW), "5": (10, RAW)}),
        "belongs to no tensor",
    ),
    "old, missing storage": (build.torch_legacy(one(OLD, [10], [1]), {}), "is not in it"),
}


def test_the_good_files_are_good() -> None:
    assert len(parsed(GOOD).tensors) == len(parsed(GOOD_OLD).tensors) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str) -> None:
    data, reason = REFUSED[name]
    with pytest.raises(BadArchive) as caught:
        parsed(data)
    assert reason in str(caught.value.fields["cause"])
    assert caught.value.fields["file"] == "m.pt"


@pytest.mark.parametrize("body", [build.name("os", "system"), b"}}b"])
def test_malicious_pickles_are_refused_in_both_formats(body: bytes) -> None:
    for data in (zipped(body), build.torch_legacy(body, {})):
        with pytest.raises(BadPickle):
            parsed(data)


def test_a_plain_pickle_is_no_torch_file() -> None:
    with pytest.raises(BadArchive, match="not one that torch"):
        parsed(build.pickle(build.dict_of({"w": b"K\1"})))


def test_storages_may_not_reach_into_each_other() -> None:
    """A directory that says a storage is longer than the room before the next entry."""
    data = bytearray(GOOD)
    place = data.index(b"archive/data/0", data.index(b"PK\1\2")) - 46
    for field in (20, 24):
        struct.pack_into("<I", data, place + field, 4000)
    with pytest.raises(BadArchive, match=r"overlap|beyond|reaches"):
        parsed(bytes(data))


def test_a_dictionary_of_dictionaries_without_end() -> None:
    """Sixty levels that each hold the next one twice: 2**60 tensors, were they walked."""
    body = build.dict_of({"w": W}) + b"q\0"
    for level in range(60):
        here, below = bytes([level + 1]), bytes([level])
        body += (
            b"0}(" + build.text("a") + b"h" + below + build.text("b") + b"h" + below + b"uq" + here
        )
    with pytest.raises(BadArchive, match="no named tensors"), at_most(100_000):
        parsed(zipped(body))  # too deep, and so passed over
    shallow = build.dict_of({"w": W}) + b"q\0"
    for level in range(20):
        here, below = bytes([level + 1]), bytes([level])
        shallow += (
            b"0}(" + build.text("a") + b"h" + below + build.text("b") + b"h" + below + b"uq" + here
        )
    with at_most(100_000):
        found = parsed(zipped(shallow))
    assert len(found.tensors) == 1


def test_a_dictionary_that_holds_itself() -> None:
    body = b"}q\0(" + build.text("me") + b"h\0" + build.text("w") + W + b"u"
    assert [spec.name for spec in parsed(zipped(body)).tensors] == ["w"]


@pytest.mark.parametrize(
    "claim", [b"\x8d" + struct.pack("<Q", 1 << 40), b"X\xff\xff\xff\xff", b"c"]
)
def test_lengths_in_a_large_old_file_are_not_followed(claim: bytes) -> None:
    """A file of a terabyte could hold what the length claims, and is not read for it."""
    start = build.torch_legacy(b"", {}).split(b"\x80\x02.")[0]
    recorder = Recorder(start + b"\x80\x02" + claim, "m.pt", size=1 << 41)
    with pytest.raises(KinprintError):
        parse_torch(recorder.view)
    assert recorder.fetched <= 1 << 20


def test_a_directory_too_large_is_not_read() -> None:
    """The end record of a large archive claims a directory of a gigabyte."""
    size = 8 << 30
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 9, 9, 1 << 30, 1 << 30, 0)

    def fetch(start: int, stop: int) -> bytes:
        assert stop - start < 32 << 20
        whole = bytearray(stop - start)
        if start == 0:
            whole[:4] = b"PK\3\4"
        if stop == size:
            whole[-len(end) :] = end
        return bytes(whole)

    recorder = Recorder(b"", "m.pt", size=size)
    with pytest.raises(BadArchive, match="more than 16 MiB"):
        parse_torch(replace(recorder.view, fetch=fetch))


@pytest.mark.parametrize("data", [GOOD, GOOD_OLD], ids=["zip", "old"])
def test_every_truncation_is_noticed(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(KinprintError):
            parsed(data[:length])


@few_and_many(
    150,
    600,
    st.sampled_from([GOOD, GOOD_OLD]),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=8)), max_size=6),
    st.integers(0, 40),
)
def test_damage_never_surprises(whole: bytes, changes: list[tuple[float, bytes]], cut: int) -> None:
    data = bytearray(whole)
    for where, replacement in changes:
        place = int(where * (len(data) - 1))
        data[place : place + len(replacement)] = replacement
    damaged = bytes(data[: len(data) - cut] if cut > 20 else data)
    try:
        with at_most(100_000):
            header = parsed(damaged)
    except KinprintError:
        return
    for spec in header.tensors:
        assert 0 <= spec.offset <= spec.offset + spec.nbytes <= len(damaged)
