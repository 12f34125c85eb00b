"""Layouts without a library at hand, against references written from what was published.

Each reference here is the plainest loop over the layout that its comment names, and shares
no code with what it checks.
"""

from __future__ import annotations

import json
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.errors import BadQuantisation
from kinprint.model.quantised import described, describing, logical_weights
from kinprint.reader.decode import Array
from tests.model.quantised.fixtures import Stored, store

rng = np.random.default_rng(3)
KINDS = [("F8_E4M3", ml_dtypes.float8_e4m3fn), ("F8_E5M2", ml_dtypes.float8_e5m2)]


def everything(model: Stored, name: str) -> Array:
    weight = model.weight(name)
    assert weight.shape is not None
    return model.rows(weight, range(int(np.prod(weight.shape[:-1]))))


def fp8(*shape: int, kind: type = ml_dtypes.float8_e4m3fn) -> Array:
    return rng.standard_normal(shape).astype(np.float32).astype(kind)


def scales(*shape: int) -> Array:
    return (rng.random(shape) + 0.5).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "grid", "suffix"),
    [
        ((6, 10), (), "_scale"),  # AutoFP8, modelopt: one number without an axis
        ((6, 10), (1,), "_scale"),
        ((6, 10), (6, 1), "_scale"),  # FBGEMM and compressed-tensors: per output
        ((6, 10), (6,), "_scale"),
        ((130, 140), (2, 2), "_scale_inv"),  # DeepSeek: blocks of 128, ragged on both sides
        ((3, 6, 10), (3, 1, 1), "_scale"),  # stacked experts: per expert
        ((3, 6, 10), (3,), "_scale"),
        ((3, 6, 10), (3, 1, 10), "_scale"),  # llama 4 in FBGEMM: [E, in, out], per output
        ((3, 130, 140), (3, 2, 2), "_scale_inv"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_fp8_scales_lie_on_a_grid(
    shape: tuple[int, ...], grid: tuple[int, ...], suffix: str, kind: tuple[str, type]
) -> None:
    weight, scale = fp8(*shape, kind=kind[1]), scales(*grid)
    model = store({"x.weight": (kind[0], weight), f"x.weight{suffix}": ("F32", scale)}, {})
    full = scale.reshape(
        (*grid, *(1,) * (len(shape) - len(grid))) if len(grid) else (1,) * len(shape)
    )
    expected = np.empty(shape, np.float32)
    for place in product(*map(range, shape)):
        where = tuple(
            0 if have == 1 else i if have == size else i // 128
            for i, have, size in zip(place, full.shape, shape, strict=True)
        )
        expected[place] = np.float32(weight[place]) * full[where]
    np.testing.assert_array_equal(everything(model, "x.weight"), expected.reshape(-1, shape[-1]))


@settings(deadline=None)
@given(st.sampled_from([2, 3, 4, 8]), st.booleans(), st.integers(0, 2**32 - 1))
def test_gptq_zero_points_wrap(bits: int, second: bool, seed: int) -> None:
    """A zero point of nought is stored as all ones by the first format (AutoGPTQ 0.7.1)."""
    draw = np.random.default_rng(seed)
    inputs, outputs, group = 64, 32, 16
    codes = draw.integers(0, 2**bits, (inputs, outputs))
    zeros = draw.integers(0, 2**bits, (inputs // group, outputs))
    step = draw.random(zeros.shape).astype(np.float16)
    g_idx = draw.permutation(np.arange(inputs) // group).astype(np.int32)
    kept = zeros if second else (zeros - 1) % 2**bits
    said = {
        "quant_method": "gptq",
        "bits": bits,
        "checkpoint_format": "gptq_v2" if second else "gptq",
    }
    model = store(
        {
            "x.qweight": ("I32", pack(codes.T, bits).T),
            "x.qzeros": ("I32", pack(kept, bits)),
            "x.scales": ("F16", step),
            "x.g_idx": ("I32", g_idx),
        },
        {"quantization_config": said},
    )
    expected = (codes - zeros[g_idx]) * step[g_idx].astype(np.float32)
    np.testing.assert_array_equal(everything(model, "x.weight"), expected.T.astype(np.float32))


def pack(codes: Array, bits: int) -> Array:
    """Fields one after another from the lowest bit of 32-bit words on, row by row."""
    out = []
    for row in codes:
        stream = sum(int(code) << (bits * i) for i, code in enumerate(row))
        count = -(-len(row) * bits // 32)
        out.append(np.frombuffer(stream.to_bytes(count * 4, "little"), "<i4"))
    return np.array(out)


@pytest.mark.parametrize("experts", [0, 2])
def test_packed_with_groups_out_of_order_and_stacked(experts: int) -> None:
    """weight_g_idx of compressed-tensors, and the packed zero points of each expert."""
    lead = (experts,) if experts else ()
    codes = rng.integers(0, 16, (*lead, 12, 64))
    zeros = rng.integers(0, 16, (*lead, 12, 4))
    step = scales(*lead, 12, 4)
    g_idx = rng.permutation(np.arange(64) // 16).astype(np.int32)
    down = np.swapaxes(zeros, -1, -2)
    weights = {"num_bits": 4, "group_size": 16, "symmetric": False}
    config = {"quantization_config": {"config_groups": {"a": {"weights": weights}}}}
    model = store(
        {
            "x.weight_packed": ("I32", pack(codes.reshape(-1, 64), 4).reshape(*lead, 12, 8)),
            "x.weight_zero_point": (
                "I32",
                np.swapaxes(pack(down.reshape(-1, 12), 4).reshape(*lead, 4, 2), -1, -2),
            ),
            "x.weight_scale": ("F32", step),
            "x.weight_g_idx": ("I32", g_idx),
        },
        config,
    )
    expected = (codes - zeros[..., g_idx]) * step[..., g_idx]
    found = everything(model, "x.weight")
    np.testing.assert_array_equal(found, expected.reshape(-1, 64).astype(np.float32))


def test_packed_without_a_configuration_reads_its_own_shape() -> None:
    codes = rng.integers(0, 16, (4, 20))
    model = store(
        {
            "x.weight_packed": ("I32", pack(codes, 4)),
            "x.weight_scale": ("F32", np.ones((4, 1), np.float32)),
            "x.weight_shape": ("I64", np.array([4, 20])),
        },
        {},
    )
    assert logical_weights(model.specs, {})["x.weight"].shape is None
    np.testing.assert_array_equal(everything(model, "x.weight"), codes - 8)


def test_packed_width_that_words_round_up_is_noticed() -> None:
    config = {"quantization_config": {"config_groups": {"a": {"weights": {"num_bits": 4}}}}}
    codes = rng.integers(0, 16, (4, 20))
    model = store(
        {
            "x.weight_packed": ("I32", pack(codes, 4)),
            "x.weight_scale": ("F32", np.ones((4, 1), np.float32)),
            "x.weight_shape": ("I64", np.array([4, 20])),
        },
        config,
    )
    rounded = logical_weights(model.specs, config)["x.weight"]
    assert rounded.shape == (4, 24)
    with pytest.raises(BadQuantisation, match="not the one its words suggest"):
        model.rows(rounded, range(4))
    exact = described(rounded, model.read(describing(rounded)))
    np.testing.assert_array_equal(model.rows(exact, range(4)), codes - 8)


def test_nvfp4_experts_with_a_scale_each() -> None:
    """modelopt's stacked experts: one weight_scale_2 for each of them."""
    table = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    packed = rng.integers(0, 256, (2, 3, 16)).astype(np.uint8)
    step, overall = fp8(2, 3, 2), scales(2)
    model = store(
        {
            "x": ("U8", packed),
            "x_weight_scale": ("F8_E4M3", step),
            "x_weight_scale_2": ("F32", overall),
        },
        {},
    )
    found = everything(model, "x").reshape(2, 3, 32)
    for e, r, c in product(range(2), range(3), range(32)):
        code = packed[e, r, c // 2] >> 4 if c % 2 else packed[e, r, c // 2] & 15
        value = (-1 if code & 8 else 1) * table[code & 7]
        expected = value * np.float32(step[e, r, c // 16]) * overall[e]
        assert found[e, r, c] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", ["F8_E4M3", "I8"])
@pytest.mark.parametrize(("name", "divides"), [("_scale_2", False), ("_global_scale", True)])
def test_eight_bits_with_one_more_scale_over_all(kind: str, name: str, divides: bool) -> None:
    """What modelopt and compressed-tensors have over four bits means the same over eight."""
    codes = fp8(2, 3, 8) if kind == "F8_E4M3" else rng.integers(-9, 9, (2, 3, 8)).astype(np.int8)
    step = scales(2, 3, 1)
    for overall in (scales(1), scales(2)):
        model = store(
            {
                "x.weight": (kind, codes),
                "x.weight_scale": ("F32", step),
                f"x.weight{name}": ("F32", overall),
            },
            {},
        )
        factor = np.broadcast_to(1 / overall if divides else overall, 2)[:, None, None]
        expected = codes.astype(np.float32) * step * factor
        found = everything(model, "x.weight").reshape(codes.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_four_bits_stored_as_wider_numbers() -> None:
    """bitsandbytes' quant_storage: the same bytes under another type, for FSDP."""
    codes = rng.integers(0, 16, 3 * 8)
    packed = (codes[::2] << 4 | codes[1::2]).astype(np.uint8)
    table = np.linspace(-1, 1, 16, dtype=np.float32)
    state = json.dumps({"shape": [3, 8], "blocksize": 8, "quant_type": "nf4", "dtype": "bfloat16"})
    model = store(
        {
            "x.weight": ("BF16", packed.view(np.uint16).reshape(-1, 1)),
            "x.weight.absmax": ("F32", np.array([1, 2, 3], np.float32)),
            "x.weight.quant_map": ("F32", table),
            "x.weight.quant_state.bitsandbytes__nf4": (
                "U8",
                np.frombuffer(state.encode(), np.uint8),
            ),
        },
        {},
    )
    expected = table[codes].reshape(3, 8) * np.array([[1], [2], [3]], np.float32)
    np.testing.assert_array_equal(everything(model, "x.weight"), expected)
