"""What headers tell of a model without reading its numbers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import kinprint
from tests.lineage.stored_models import LLAMA, Array, llama, stored
from tests.reader.formats.gguf.builder import ARRAY, STRING, array, gguf, pair, tensor, text


def header(*pairs: bytes) -> bytes:
    """A file with one small table and some metadata."""
    own = pair("general.architecture", STRING, text("llama"))
    rows = struct.pack("<128f", *range(128))
    return gguf((own, *pairs), [tensor("token_embd.weight", (32, 4))], rows)


@pytest.mark.parametrize("spelt", [True, False])
def test_a_header_without_a_vocabulary_is_no_tokenizer(spelt: bool, tmp_path: Path) -> None:
    words = array(STRING, 4, b"".join(map(text, "abcd")))
    pairs = [pair("tokenizer.ggml.tokens", ARRAY, words)] if spelt else []
    path = tmp_path / "model.gguf"
    path.write_bytes(header(*pairs))
    found = kinprint.inspect(str(path), cache=False).to_dict()
    assert (found["tokenizer"] is not None) == spelt


def nf4(stem: str, weight: Array) -> dict[str, Array]:
    """bitsandbytes' four bits: the shape stands in a tensor of its own."""
    state = b'{"quant_type": "nf4", "blocksize": 64, "shape": [%d, %d]}' % weight.shape
    return {
        f"{stem}.weight": np.zeros((weight.size // 2, 1), np.uint8),
        f"{stem}.weight.absmax": np.ones(-(-weight.size // 64), np.float32),
        f"{stem}.weight.quant_map": np.arange(16, dtype=np.float32),
        f"{stem}.weight.quant_state.bitsandbytes__nf4": np.frombuffer(state, np.uint8),
    }


def nvfp4(stem: str, weight: Array) -> dict[str, Array]:
    """ModelOpt's four bits, with a scale for what the layer takes in."""
    rows, inputs = weight.shape
    return {
        f"{stem}.weight": np.zeros((rows, inputs // 2), np.uint8),
        f"{stem}.weight_scale": np.ones((rows, inputs // 16), ml_dtypes.float8_e4m3fn),
        f"{stem}.weight_scale_2": np.ones((), np.float32),
        f"{stem}.input_scale": np.ones((), np.float32),
    }


@pytest.mark.parametrize(
    ("method", "pack"), [("bitsandbytes", nf4), ("modelopt", nvfp4)], ids=["nf4", "nvfp4"]
)
def test_a_quantised_model_has_as_many_numbers_as_before(
    method: str, pack: Callable[[str, Array], dict[str, Array]], tmp_path: Path
) -> None:
    plain = llama(1)
    packed: dict[str, Array] = {}
    for name, values in plain.items():
        packed |= pack(name.removesuffix(".weight"), values) if "_proj" in name else {name: values}
    config = {**LLAMA, "quantization_config": {"quant_method": method}}
    path = stored(tmp_path / "packed", packed, config)
    wanted = sum(values.size for values in plain.values())
    assert kinprint.inspect(path, cache=False).parameters == wanted


def test_codes_of_a_format_that_is_not_read_are_no_parameters(tmp_path: Path) -> None:
    plain = llama(1)
    packed: dict[str, Array] = {}
    for name, values in plain.items():
        stem = name.removesuffix(".weight")
        if "_proj" in name:
            packed[f"{stem}.W_q"] = np.zeros((values.size // 2, 1), np.uint8)
            packed[f"{stem}.scale"] = np.ones((values.size // 64, 1), np.float32)
        else:
            packed[name] = values
    config = {**LLAMA, "quantization_config": {"quant_method": "hqq"}}
    found = kinprint.inspect(stored(tmp_path / "packed", packed, config), cache=False)
    rest = sum(values.size for name, values in plain.items() if "_proj" not in name)
    codes = sum(values.size // 2 for name, values in plain.items() if "_proj" in name)
    assert (found.parameters, found.codes) == (rest, codes)
    assert f"{codes:,} stored numbers of packed weights that cannot" in repr(found)
