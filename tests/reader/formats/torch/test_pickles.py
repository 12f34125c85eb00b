"""The pickle interpreter: plain data as `pickle` reads it, and nothing that runs."""

from __future__ import annotations

import contextlib
import copyreg
import io
import pickle
import sys
import tracemalloc
from collections import OrderedDict
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.errors import BadPickle, KinprintError
from kinprint.reader.formats.torch import pickles
from kinprint.reader.formats.torch.pickles import Opaque, Symbol, load, shown
from kinprint.reader.formats.torch.records import StorageRecord, TensorRecord, TorchNames
from tests.reader.formats.torch import builder as build
from tests.work import at_most

PLAIN = {
    "text": "글자",
    "raw": b"\0\xff",
    "numbers": [0, 1, -1, 255, 65536, -(2**31), 2**40, 2**70, 1.5, float("inf")],
    "flags": (True, False, None),
    "nested": {"a": {"b": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]}},
    3: ["x"] * 3,
}


PARAMETER = build.name("torch._utils", "_rebuild_parameter")
MAKER = build.name("torch._utils", "_rebuild_tensor_v2")


def read(data: bytes) -> object:
    return load(io.BytesIO(data), "m.pt", TorchNames())


@pytest.mark.parametrize("protocol", range(6))
def test_plain_data_is_what_pickle_reads(protocol: int) -> None:
    value = dict(PLAIN) if protocol >= 3 else {k: v for k, v in PLAIN.items() if k != "raw"}
    assert read(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(2, 6))
def test_odd_values_are_kept_or_made_opaque(protocol: int) -> None:
    shared = ["s"]
    value = {
        "set": {"m"},
        "frozen": frozenset({"m"}),
        "ordered": OrderedDict(a=1),
        "complex": 1j,
        "array": bytearray(b"xy"),
        "twice": (shared, shared),
    }
    got = read(pickle.dumps(value, protocol))
    assert isinstance(got, dict)
    assert got["set"] == got["frozen"] == ["m"]
    assert got["ordered"] == {"a": 1}
    assert got["complex"] == Opaque("builtins.complex")
    assert got["array"] in (bytearray(b"xy"), Opaque("builtins.bytearray"))
    assert got["twice"][0] is got["twice"][1]


def test_bytes_of_protocol_2_are_opaque() -> None:
    assert read(pickle.dumps(b"\0\xff", 2)) == Opaque("_codecs.encode")


def test_python_2_dictionaries_of_pairs() -> None:
    pairs = build.list_of(build.list_of(b"U\x01a", b"K\x01"), build.list_of(b"U\x01b", b"K\x02"))
    body = build.call(build.name("collections", "OrderedDict"), pairs)
    assert read(build.pickle(body)) == {"a": 1, "b": 2}


def test_the_stream_stands_behind_the_pickle() -> None:
    stream = io.BytesIO(pickle.dumps([1], 2) + pickle.dumps([2], 2) + b"rest")
    assert [load(stream, "m", TorchNames()) for _ in range(2)] == [[1], [2]]
    assert stream.read() == b"rest"


def test_tensors_and_symbols() -> None:
    nine = build.storage("FloatStorage", "9", 2)
    body = build.dict_of(
        {
            "w": build.tensor(build.storage("HalfStorage", "7", 12), [3, 2], [4, 1], 2),
            "f8": build.tensor_v3(build.storage("UntypedStorage", "8", 4), [4], [1], "float8_e5m2"),
            "p": build.call(
                build.name("torch._utils", "_rebuild_parameter"),
                build.vector("9", 2),
                b"\x88",
                b"}",
            ),
            "typed": build.call(
                build.name("torch._tensor", "_rebuild_from_type_v2"),
                MAKER,
                build.name("torch.nn.parameter", "Parameter"),
                build.tuple_of(nine, b"K\0", b"K\2\x85", b"K\1\x85", b"\x89", b"}"),
                b"}",
            ),
            "dtype": build.name("torch", "bfloat16"),
            "size": build.call(build.name("torch", "Size"), build.numbers([1, 2])),
            "device": build.call(build.name("torch", "device"), build.text("cuda:0")),
        }
    )
    half = StorageRecord("7", "F16", 12, 24, 0, 24)
    floats = StorageRecord("9", "F32", 2, 8, 0, 8)
    assert read(build.pickle(body)) == {
        "w": TensorRecord(half, "F16", 2, (3, 2), (4, 1)),
        "f8": TensorRecord(StorageRecord("8", None, 4, 4, 0, 4), "F8_E5M2", 0, (4,), (1,)),
        "p": TensorRecord(floats, "F32", 0, (2,), (1,)),
        "typed": TensorRecord(floats, "F32", 0, (2,), (1,)),
        "dtype": Symbol("torch.bfloat16"),
        "size": (1, 2),
        "device": Opaque("torch.device"),
    }


# A module that tells when anyone so much as looks at what is in it. The real `pickle` is
# run on the same bytes, to see that they are dangerous and not merely malformed.
class Sentinel(ModuleType):
    touched: list[str] = []  # noqa: RUF012

    def __getattr__(self, attribute: str) -> object:
        if not attribute.startswith("__"):
            Sentinel.touched.append(attribute)
        if attribute == "Class":
            return Dangerous
        if attribute == "function":
            return Sentinel.touched.append
        raise AttributeError(attribute)


class Dangerous:
    def __new__(cls, *arguments: object, **named: object) -> Dangerous:
        Sentinel.touched.append("new")
        return super().__new__(cls)

    def __setstate__(self, state: object) -> None:
        Sentinel.touched.append("setstate")


CODE = 0xF0
F = b"csentinel_of_pickles\nfunction\n"
C = b"csentinel_of_pickles\nClass\n"
ARG = b"X\x04\0\0\0boom"
STACKED = b"\x8c\x13sentinel_of_pickles\x8c\x08function\x93"
ATTACKS = {
    "GLOBAL and REDUCE": b"\x80\x02" + F + ARG + b"\x85R.",
    "only named": b"\x80\x02" + F + b".",
    "STACK_GLOBAL": b"\x80\x04" + STACKED + ARG + b"\x85R.",
    "INST": b"(" + ARG + b"isentinel_of_pickles\nfunction\n.",
    "OBJ": b"\x80\x02(" + C + b"o.",
    "NEWOBJ": b"\x80\x02" + C + b")\x81.",
    "NEWOBJ_EX": b"\x80\x04" + C + b")}\x92.",
    "BUILD": b"\x80\x02" + C + b")\x81}b.",
    "EXT1": b"\x80\x02\x82" + bytes([CODE]) + ARG + b"\x85R.",
    "EXT2": b"\x80\x02\x83" + bytes([CODE]) + b"\0" + ARG + b"\x85R.",
    "EXT4": b"\x80\x02\x84" + bytes([CODE]) + b"\0\0\0" + ARG + b"\x85R.",
    "inside a dictionary": b"\x80\x02}X\1\0\0\0k" + F + ARG + b"\x85Rs.",
    "popped again": b"\x80\x02" + F + ARG + b"\x85R0K\1.",
    "as a default": b"\x80\x02ccollections\nOrderedDict\n)R" + F + ARG + b"\x85Rb.",
}


@pytest.fixture
def sentinel() -> Iterator[list[str]]:
    sys.modules["sentinel_of_pickles"] = Sentinel("sentinel_of_pickles")
    copyreg.add_extension("sentinel_of_pickles", "function", CODE)
    Sentinel.touched.clear()
    yield Sentinel.touched
    copyreg.remove_extension("sentinel_of_pickles", "function", CODE)
    copyreg.clear_extension_cache()
    del sys.modules["sentinel_of_pickles"]


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_runs(name: str, sentinel: list[str]) -> None:
    with pytest.raises(BadPickle) as caught:
        read(ATTACKS[name])
    assert sentinel == []
    cause = str(caught.value.fields["cause"])
    assert "sentinel_of_pickles." in cause or "extension registry" in cause
    try:
        pickle.loads(ATTACKS[name])
    except Exception:
        assert name == "as a default"
    assert sentinel != []


@pytest.mark.parametrize(
    "asked",
    [
        "os.system",
        "posix.system",
        "builtins.eval",
        "builtins.getattr",
        "__builtin__.eval",
        "torch.storage._load_from_bytes",
        "torch.load",
        "torch.hub.load",
        "numpy.core.multiarray._reconstruct",
        "collections.defaultdict",
        "argparse.Namespace",
        "collections.OrderedDict.fromkeys",
        "__torch__.Module",
    ],
)
def test_other_globals_are_named_and_refused(asked: str) -> None:
    module, attribute = asked.rsplit(".", 1)
    expected = f"it asks for the global '{asked}', which is not on the list of harmless ones"
    for body in (
        build.name(module, attribute),
        build.text(module) + build.text(attribute) + b"\x93",
    ):
        with pytest.raises(BadPickle) as caught:
            read(build.pickle(body))
        assert caught.value.fields["file"] == "m.pt"
        assert str(caught.value.fields["cause"]) == expected


V = build.vector("0", 2)
S = build.storage("FloatStorage", "0", 2)
REFUSED = {
    "quantised": (build.name("torch._utils", "_rebuild_qtensor"), "quantised tensors"),
    "quantised storage": (build.storage("QInt8Storage", "0", 2), "quantised tensors"),
    "sparse": (build.name("torch._utils", "_rebuild_sparse_tensor"), "sparse tensors"),
    "meta": (build.name("torch._utils", "_rebuild_meta_tensor_no_storage"), "no numbers"),
    "a class of its own": (
        build.call(
            build.name("torch._tensor", "_rebuild_from_type_v2"),
            MAKER,
            build.name("torch", "Size"),
            b")",
            b"}",
        ),
        "class of their own",
    ),
    "conjugate": (
        build.tensor(S, [2], [1], 0, build.dict_of({"conj": b"\x88"})),
        "negative or conjugate",
    ),
    "no such dtype": (
        build.tensor_v3(build.storage("UntypedStorage", "0", 2), [2], [1], "float4_e2m1fn_x2"),
        "float4_e2m1fn_x2",
    ),
    "untyped": (build.tensor(build.storage("UntypedStorage", "0", 2), [2], [1]), "what they mean"),
    "calls a class": (
        build.call(build.name("torch", "FloatStorage"), b"K\1"),
        "only knows by name",
    ),
    "calls a number": (b"K\1)R", "not on the list"),
    "calls a dtype": (build.call(build.name("torch", "float32")), "only knows by name"),
    "arguments of a list": (build.name("torch", "Size") + b"]R", "without a tuple"),
    "parameter of text": (
        build.call(PARAMETER, build.text("x")),
        "no tensor",
    ),
    "no arguments": (
        build.call(MAKER),
        "without a storage",
    ),
    "huge storage": (build.storage("FloatStorage", "0", 2**62), "no sensible number"),
    "negative storage": (build.storage("FloatStorage", "0", -1), "no sensible number"),
    "negative stride": (build.tensor(S, [2], [-1]), "no sensible number"),
    "negative offset": (build.tensor(S, [2], [1], -1), "no sensible number"),
    "strides missing": (build.tensor(S, [1, 2], [1]), "more dimensions"),
    "endless shape": (build.tensor(S, [1] * 65, [1] * 65), "no short tuple"),
    "two sizes": (S + b"0" + build.storage("FloatStorage", "0", 3), "two sizes"),
    "module": (build.tuple_of(build.text("module"), b"N", b"N", b"N", b"N") + b"Q", "no storage"),
    "id of text": (b"Pabc\n", "no storage"),
    "id of numbers": (b"K\1Q", "no storage"),
    "odd storage": (build.tuple_of(build.text("storage"), *[b"N"] * 4) + b"Q", "unknown kind"),
    "view outside": (
        build.storage("FloatStorage", "0", 2, build.tuple_of(b"N", b"K\1", b"K\2")),
        "beyond its storage",
    ),
    "state of a list": (b"]}b", "inner state"),
    "state of a dictionary": (b"}}b", "inner state"),
    "state of a tensor": (V + b"}b", "inner state"),
    "named arguments": (build.name("torch", "Size") + b")}K\1K\1s\x92", "named arguments"),
    "append to a tuple": (b")K\1a", "no container"),
    "set in a list": (b"]K\1K\1s", "no container"),
    "key without value": (b"}(K\1u", "without a value"),
    "pop of nothing": (b"0", "not there"),
    "unopened group": (b"K\1t", "did not open"),
    "unknown memo": (b"h\5", "did not keep"),
    "memo too large": (b"Np99999999999999999999999\n", "too large"),
    "negative memo": (b"Np-1\n", "too large"),
    "values left": (b"K\1K\2", "leaves values behind"),
    "mark left": (b"(K\2", "leaves values behind"),
    "buffers": (b"\x97", "NEXT_BUFFER"),
    "unknown opcode": (b"\xff", "damaged"),
    "long number": (b"I" + b"9" * 100_000 + b"\n", "damaged"),
    "no text": (b"X\1\0\0\0\xff", "damaged"),
    "global of numbers": (b"K\1K\1\x93", "no text"),
    "protocol": (b"\x80\x06N", "protocol 6"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str) -> None:
    body, reason = REFUSED[name]
    with pytest.raises(BadPickle) as caught:
        read(build.pickle(body))
    assert reason in str(caught.value.fields["cause"])


def test_a_stranger_s_words_cannot_disturb_a_terminal() -> None:
    with pytest.raises(BadPickle) as caught:
        read(build.pickle(build.text("os\x1b[2J") + build.text("x" * 10_000) + b"\x93"))
    assert "\x1b" not in str(caught.value) and len(str(caught.value)) < 400
    assert shown("a" * 80) == "a" * 80 and len(shown("a" * 81)) == 80


MANY = 10_000
BOMBS: dict[str, tuple[bytes, object]] = {
    "open marks": (b"(" * MANY, "nests more than 1000 deep"),
    "tuples in tuples": (b")" + b"\x85" * MANY + b".", tuple),
    "lists in lists": (b"]" * MANY + b"a" * (MANY - 1) + b".", list),
    "numbers that collide": (
        b"}(" + b"".join(build.whole(n * (2**61 - 1)) + b"N" for n in range(1, MANY)) + b"u.",
        {},
    ),
    "tuples that collide": (
        b"}("
        + b"".join(
            build.tuple_of(
                *(b"J\xff\xff\xff\xff" if n >> b & 1 else b"J\xfe\xff\xff\xff" for b in range(12))
            )
            + b"N"
            for n in range(4_000)
        )
        + b"u.",
        {},
    ),
    "dictionaries copied": (
        b"ccollections\nOrderedDict\nq\0"
        + build.list_of(*[build.list_of(b"K\1", b"N")] * MANY)
        + b"q\1"
        + b"h\0h\1\x85R0" * MANY
        + b".",
        "copies dictionaries without end",
    ),
    "bytes copied": (
        b"c_codecs\nencode\nq\0"
        + b"0X"
        + (10**6).to_bytes(4, "little")
        + b"a" * 10**6
        + b"q\1"
        + b"0"
        + b"h\0h\1\x85R0" * MANY
        + b"h\0h\1\x85R.",
        Opaque("_codecs.encode"),
    ),
    "duplicates": (b"K\1" + b"2" * MANY + b".", "leaves values behind"),
    "memo": (b"N" + b"\x94" * MANY + b".", None),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_fizzle(name: str) -> None:
    """Work and memory grow with the length of the pickle and no faster."""
    body, expected = BOMBS[name]
    data = b"\x80\x04" + body
    tracemalloc.start()
    try:
        with at_most(20 * len(data)):
            found = read(data)
    except BadPickle as error:
        assert isinstance(expected, str) and expected in str(error.fields["cause"])
    else:
        # values nested this deep must not be compared: that would recurse
        assert isinstance(found, expected) if isinstance(expected, type) else found == expected
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < (1 << 20) + 100 * len(data)


def test_the_number_of_opcodes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "MOST_OPCODES", 100)
    with pytest.raises(BadPickle, match="more than 100 instructions"):
        read(build.pickle(b"N0" * 60 + b"N"))


VALID = build.pickle(
    build.dict_of(
        {
            "state_dict": build.ordered({"a": V, "b": build.tensor(S, [1, 2], [2, 1])}),
            "sys": build.list_of(
                b"G?\xf8\0\0\0\0\0\0", b"I01\n", b"S'x'\n", b"\x8a\1\2", b"(I1\nl"
            ),
            "sentinel_of_pickles": build.text("function"),
        }
    )
)


def test_every_truncation_is_noticed() -> None:
    read(VALID)
    for length in range(len(VALID)):
        with pytest.raises(BadPickle):
            read(VALID[:length])


FRAGMENTS = st.sampled_from(
    [F, C, STACKED, b"R", b"b", b"\x81", b"\x92", b"o", b"(", b"t", b"0", b"Q", b".", b"\x93", b"2"]
)


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(VALID) - 1), st.integers(0, 4), st.binary(max_size=6) | FRAGMENTS
        ),
        max_size=6,
    )
)
@settings(max_examples=500, deadline=None)
def test_damage_never_surprises(changes: list[tuple[int, int, bytes]]) -> None:
    sys.modules["sentinel_of_pickles"] = Sentinel("sentinel_of_pickles")
    Sentinel.touched.clear()
    data = VALID
    for place, drop, insert in changes:
        data = data[:place] + insert + data[place + drop :]
    try:
        with at_most(100_000):
            read(data)
    except KinprintError:
        pass
    finally:
        del sys.modules["sentinel_of_pickles"]
    assert Sentinel.touched == []


@given(st.binary(max_size=60))
@settings(max_examples=500, deadline=None)
def test_random_bytes_never_surprise(data: bytes) -> None:
    with contextlib.suppress(KinprintError), at_most(100_000):
        read(data)
