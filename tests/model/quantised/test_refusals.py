"""What a configuration means, and what is refused rather than read wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from kinprint.errors import BadQuantisation
from kinprint.model.quantised import described, logical_weights, needed, scheme_for
from kinprint.reader.plan import slice_bytes
from tests.examples import few_and_many
from tests.model.quantised.fixtures import declare, load

Shape = tuple[str, tuple[int, ...]]
GOOD: dict[str, dict[str, Shape]] = {
    "gptq": {
        "x__qweight": ("I32", (8, 32)),
        "x__qzeros": ("I32", (2, 4)),
        "x__scales": ("F16", (2, 32)),
        "x__g_idx": ("I32", (64,)),
    },
    "awq": {
        "x__qweight": ("I32", (64, 4)),
        "x__qzeros": ("I32", (2, 4)),
        "x__scales": ("F16", (2, 32)),
    },
    "fp8": {"x__weight": ("F8_E4M3", (200, 300)), "x__weight_scale_inv": ("F32", (2, 3))},
    "mxfp4": {"x_blocks": ("U8", (2, 8, 3, 16)), "x_scales": ("U8", (2, 8, 3))},
    "nvfp4": {
        "x__weight": ("U8", (8, 16)),
        "x__weight_scale": ("F8_E4M3", (8, 2)),
        "x__weight_scale_2": ("F32", ()),
    },
    "packed fp4": {
        "x__weight_packed": ("U8", (8, 16)),
        "x__weight_scale": ("F8_E4M3", (8, 2)),
        "x__weight_global_scale": ("F32", (1,)),
    },
    "packed words": {
        "x__weight_packed": ("I32", (8, 4)),
        "x__weight_scale": ("F16", (8, 1)),
        "x__weight_shape": ("I64", (2,)),
    },
}


@pytest.mark.parametrize("kind", GOOD)
def test_names_and_shapes_alone_suffice(kind: str) -> None:
    found = logical_weights(declare(**GOOD[kind]), {})
    assert len(found) == 1
    assert {spec.name for w in found.values() for spec in w.parts.values()} == {
        name.replace("__", ".") for name in GOOD[kind]
    }


@pytest.mark.parametrize(
    ("kind", "part", "instead"),
    [
        ("gptq", "x__scales", ("F16", (2, 31))),
        ("gptq", "x__scales", ("F16", (3, 32))),
        ("gptq", "x__qzeros", ("I32", (2, 5))),
        ("gptq", "x__g_idx", ("I32", (63,))),
        ("gptq", "x__g_idx", ("I32", (640,))),
        ("gptq", "x__qweight", ("I16", (8, 32))),
        ("awq", "x__qzeros", ("I32", (2, 3))),
        ("awq", "x__scales", ("F16", (3, 32))),
        ("awq", "x__scales", ("F16", (2, 24))),
        ("fp8", "x__weight_scale_inv", ("F32", (7, 3))),
        ("fp8", "x__weight_scale_inv", ("F32", (9,))),
        ("fp8", "x__weight_scale_inv", ("I64", (2, 3))),
        ("mxfp4", "x_scales", ("U8", (2, 8, 2))),
        ("nvfp4", "x__weight_scale", ("F8_E4M3", (8, 3))),
        ("nvfp4", "x__weight_scale", ("F8_E4M3", ())),
        ("nvfp4", "x__weight_scale", ("BF16", (8, 2))),
        ("nvfp4", "x__weight_scale_2", ("F32", (5,))),
        ("nvfp4", "x__weight_zero_point", ("F8_E4M3", (8, 2))),
        ("packed fp4", "x__weight_zero_point", ("I8", (8, 2))),
        ("packed words", "x__weight_global_scale", ("F32", (1,))),
    ],
)
def test_companions_that_contradict_are_refused(kind: str, part: str, instead: Shape) -> None:
    with pytest.raises(BadQuantisation, match="quantised tensor"):
        logical_weights(declare(**(GOOD[kind] | {part: instead})), {})


@pytest.mark.parametrize(
    "said",
    [
        {"quant_method": "aqlm"},
        {"quant_method": "hqq"},
        {"quant_method": "torchao"},
        {"quant_method": "nvfp4"},
        {"quant_method": "gptq", "checkpoint_format": "marlin"},
        {"quant_method": "awq", "version": "gemv"},
        {"quant_method": "awq", "bits": 3},
        {"quant_method": "compressed-tensors", "format": "marlin-24"},
        {"quant_method": "auto-round", "packing_format": "auto_round:exllamav2"},
        {"something": "else"},
    ],
)
def test_methods_that_cannot_be_read_are_named(said: dict[str, Any]) -> None:
    scheme = scheme_for({"quantization_config": said})
    assert scheme is not None
    assert scheme.refusal
    with pytest.raises(BadQuantisation, match="does not read"):
        logical_weights({}, {"quantization_config": said})


def test_group_size_that_the_scales_deny_is_refused() -> None:
    said = {"quant_method": "gptq", "bits": 4, "group_size": 16}
    with pytest.raises(BadQuantisation, match="groups of 16"):
        logical_weights(declare(**GOOD["gptq"]), {"quantization_config": said})
    loose = said | {"dynamic": {"x": {"group_size": 32}}}
    assert logical_weights(declare(**GOOD["gptq"]), {"quantization_config": loose})


def test_plain_tensors_are_left_alone() -> None:
    specs = declare(
        x__weight=("BF16", (4, 4)), y__weight=("I8", (4, 4)), z__weight=("F8_E4M3", (4, 4)),
        vision__pos_blocks=("F32", (3, 4)), w__weight=("BF16", (4, 4)), w__weight_scale=("F32", ()),
    )  # fmt: skip
    assert logical_weights(specs, {"quantization_config": {"quant_method": "fp8"}}) == {}
    assert scheme_for({}, ["x.weight", "model.norm.weight"]) is None


def test_a_weight_stored_twice_is_refused() -> None:
    specs = declare(**GOOD["gptq"], x__weight=("BF16", (32, 64)))
    with pytest.raises(BadQuantisation, match="stored twice"):
        logical_weights(specs, {})


@pytest.mark.parametrize("holder", ["text_config", "llm_config"])
def test_wrappers_keep_it_inside(holder: str) -> None:
    scheme = scheme_for({holder: {"quantization_config": {"quant_method": "gptq", "bits": 4}}})
    assert scheme is not None
    assert (scheme.family, scheme.bits, scheme.stored_less_one) == ("gptq", 4, True)


HOSTILE = [
    b"{",
    b"[]",
    b'{"shape": 3, "blocksize": 64}',
    b'{"shape": [9, 9], "blocksize": 64}',
    b'{"shape": [18, 36], "blocksize": 0}',
    b'{"shape": [18, 36], "blocksize": Infinity}',
    b'{"shape": [-18, -36], "blocksize": 64}',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_descriptions_are_distrusted(text: bytes) -> None:
    fixture = load("bnb_nf4")
    weight = logical_weights(fixture.specs, fixture.config)[fixture.logical]
    with pytest.raises(BadQuantisation, match="quantised tensor"):
        described(weight, [np.frombuffer(text, np.uint8)])


DTYPES = ["I32", "U8", "I8", "F8_E4M3", "F8_E8M0", "F16", "F32", "I64"]
ENDINGS = [
    "weight", "weight_scale", "weight_scale_inv", "weight_scale_2", "weight_packed", "qweight",
    "weight_zero_point", "weight_g_idx", "weight_shape", "weight_global_scale", "qzeros", "scales",
    "g_idx", "SCB", "weight_format", "weight_blocks", "weight_scales", "weight.absmax",
    "weight.quant_map", "weight.quant_state.bitsandbytes__nf4", "weight._data", "weight._scale",
    "weight.nested_absmax", "weight.nested_quant_map",
]  # fmt: skip
sizes = st.lists(st.sampled_from([0, 1, 2, 3, 4, 8, 16, 32, 64]), max_size=4).map(tuple)
said = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 200) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
keys = st.sampled_from(
    [
        "quant_method",
        "bits",
        "group_size",
        "weight_block_size",
        "config_groups",
        "format",
        "dynamic",
    ]
)
methods = st.sampled_from(["gptq", "awq", "fp8", "compressed-tensors", "bitsandbytes", "mxfp4"])


@few_and_many(
    100,
    400,
    st.dictionaries(
        st.sampled_from(ENDINGS), st.tuples(st.sampled_from(DTYPES), sizes), max_size=7
    ),
    st.dictionaries(keys, said, max_size=4),
    st.none() | methods,
)
def test_no_header_and_no_configuration_breaks_it(
    parts: dict[str, Shape], config: dict[str, Any], method: str | None
) -> None:
    specs = declare(**{f"x.{ending}": shape for ending, shape in parts.items()})
    if method is not None:
        config["quant_method"] = method
    try:
        found = logical_weights(specs, {"quantization_config": config})
    except BadQuantisation:
        return
    for weight in found.values():
        assert str(weight.summary)
        if weight.shape is not None:
            height = int(np.prod(weight.shape[:-1]))
            rows = range(min(height, 3))
            for part in needed(weight, rows):
                slice_bytes(part)
