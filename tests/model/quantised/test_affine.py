"""MLX's weights, packed here as its own library packs them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from kinprint.errors import BadQuantisation
from kinprint.model.quantised import logical_weights, scheme_for
from tests.model.quantised.fixtures import Stored, declare, store

Array = NDArray[Any]
NAMES = ["x.weight", "x.scales", "x.biases"]


def packed(codes: Array, bits: int) -> Array:
    """Codes as a stream of bits, the lowest bit of the first code first, in 32-bit words."""
    stream = (codes[..., None] >> np.arange(bits)) & 1
    flat = stream.reshape(*codes.shape[:-1], -1).astype(np.uint8)
    return np.packbits(flat, axis=-1, bitorder="little").view("<u4")


def model(
    bits: int, group: int, shape: tuple[int, ...], said: dict[str, Any]
) -> tuple[Stored, Array]:
    """A weight on disk, and the numbers that it stands for."""
    chance = np.random.default_rng(bits)
    codes = chance.integers(0, 1 << bits, size=shape)
    groups = (*shape[:-1], shape[-1] // group)
    scales, biases = (chance.normal(size=groups).astype(np.float32) for _ in range(2))
    spread = [np.repeat(one, group, axis=-1) for one in (scales, biases)]
    arrays = {
        "x.weight": ("U32", packed(codes, bits)),
        "x.scales": ("F32", scales),
        "x.biases": ("F32", biases),
    }
    wanted = codes.astype(np.float32) * spread[0] + spread[1]
    return store(arrays, {"quantization": said}), wanted.reshape(-1, shape[-1])


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("shape", [(6, 128), (3, 4, 64)])
def test_rows_are_code_times_scale_plus_bias(bits: int, shape: tuple[int, ...]) -> None:
    stored, wanted = model(bits, 32, shape, {"bits": bits, "group_size": 32})
    weight = stored.weight("x.weight")
    assert (weight.shape, weight.format.name, weight.format.bits) == (shape, "MLX", bits)
    for rows in (range(len(wanted)), (1, 4)):
        np.testing.assert_allclose(stored.rows(weight, rows), wanted[list(rows)], rtol=1e-6)


def test_three_bits_lie_where_mlx_puts_them() -> None:
    codes = np.arange(8).reshape(1, 8)
    stream = packed(np.tile(codes, (1, 4)), 3).view(np.uint8)[0, :3]
    by_hand = [
        0 | 1 << 3 | (2 & 3) << 6,
        2 >> 2 | 3 << 1 | 4 << 4 | (5 & 1) << 7,
        5 >> 1 | 6 << 2 | 7 << 5,
    ]
    assert stream.tolist() == by_hand


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


@pytest.mark.parametrize("shape", [(6, 128), (3, 4, 64)])
@pytest.mark.parametrize(
    ("mode", "bits", "group", "name"),
    [("mxfp4", 4, 32, "MXFP4"), ("nvfp4", 4, 16, "NVFP4"), ("mxfp8", 8, 32, "fp8")],
)
def test_floats_in_words_have_scales_of_a_byte(
    mode: str, bits: int, group: int, name: str, shape: tuple[int, ...]
) -> None:
    chance = np.random.default_rng(group)
    codes = chance.integers(0, 1 << bits, size=shape)
    if bits == 8:
        codes &= 0xF7  # the last code is not a number
        values = codes.astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    else:
        values = FP4[codes]
    scales = chance.integers(100, 126, size=(*shape[:-1], shape[-1] // group)).astype(np.uint8)
    kind = ml_dtypes.float8_e4m3fn if mode == "nvfp4" else ml_dtypes.float8_e8m0fnu
    wanted = values * np.repeat(scales.view(kind).astype(np.float32), group, axis=-1)
    arrays = {"x.weight": ("U32", packed(codes, bits)), "x.scales": ("U8", scales)}
    for said in ({"group_size": group, "bits": bits, "mode": mode}, None):
        stored = store(arrays, {"quantization": said} if said else {})
        weight = stored.weight("x.weight")
        assert (weight.shape, weight.format.name, weight.format.bits) == (shape, name, bits)
        rows = wanted.reshape(-1, shape[-1])
        for some in (range(len(rows)), (1, 4)):
            np.testing.assert_array_equal(stored.rows(weight, some), rows[list(some)])


@pytest.mark.parametrize(("words", "groups"), [(16, 3), (16, 1), (16, 0), (48, 16)])
def test_words_that_make_no_groups_of_floats_are_refused(words: int, groups: int) -> None:
    specs = declare(x__weight=("U32", (8, words)), x__scales=("U8", (8, groups)))
    with pytest.raises(BadQuantisation):
        logical_weights(specs, {})


def test_modes_of_mlx_are_known_and_others_refused() -> None:
    for mode, refused in (("mxfp4", False), ("nvfp4", False), ("mxfp8", False), ("int2", True)):
        said = {"bits": 4, "group_size": 32, "mode": mode, "y": {"mode": "mxfp8", "bits": 8}}
        scheme = scheme_for({"quantization": said}, ["x.weight", "x.scales"])
        assert scheme is not None
        assert (scheme.refusal is not None) is refused


def test_a_module_may_have_bits_and_groups_of_its_own() -> None:
    own = {"bits": 4, "group_size": 64, "mode": "affine", "x": {"bits": 8, "group_size": 32}}
    stored, wanted = model(8, 32, (4, 64), own)
    np.testing.assert_allclose(stored.rows(stored.weight("x.weight"), range(4)), wanted, rtol=1e-6)


def test_the_method_is_known_by_its_tensors() -> None:
    said = {"bits": 4, "group_size": 64}
    scheme = scheme_for({"quantization": said}, NAMES)
    assert scheme is not None
    assert (scheme.method, scheme.bits, scheme.group, scheme.refusal) == ("mlx", 4, 64, None)
    other = scheme_for({"quantization": said}, ["x.weight"])
    assert other is not None
    assert other.refusal is not None


@pytest.mark.parametrize(
    "said",
    [
        {"bits": 4, "group_size": 32, "mode": "mxfp4"},
        {"bits": 4, "group_size": 32, "y": {"mode": "nvfp4"}},
        {"bits": 4, "group_size": 32},
        {"bits": 7, "group_size": 64},
        {"bits": 4, "group_size": 0},
        {},
    ],
)
def test_what_shapes_or_modes_deny_is_refused(said: dict[str, Any]) -> None:
    specs = declare(
        x__weight=("U32", (8, 16)), x__scales=("BF16", (8, 2)), x__biases=("BF16", (8, 2))
    )
    assert logical_weights(specs, {"quantization": {"bits": 4, "group_size": 64}})
    with pytest.raises(BadQuantisation):
        logical_weights(specs, {"quantization": said})
