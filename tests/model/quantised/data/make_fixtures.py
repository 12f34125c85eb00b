# mypy: ignore-errors
# ruff: noqa: C408
"""Makes the fixtures beside it with the libraries that own the formats.

Run in an environment that has torch and the libraries that README.md names; AutoGPTQ and
AutoAWQ build no wheel on a machine without a GPU, so their unpacked source distributions
are given by AUTO_GPTQ and AUTO_AWQ and single modules of them are loaded.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

HERE = Path(__file__).parent
NAME = "model.layers.0.self_attn.q_proj"


def save(case, tensors, config, expected, by, logical=f"{NAME}.weight", step=1):
    """Only every `step`th row of what is expected is kept, to keep the file small."""
    metadata = {"config": json.dumps(config), "by": by, "logical": logical, "step": str(step)}
    expected = expected[::step] if step > 1 else expected
    tensors = {name: tensor.contiguous() for name, tensor in tensors.items()}
    save_file(
        {**tensors, "expected": expected.contiguous()}, HERE / f"{case}.safetensors", metadata
    )


def named(parts, stem=NAME):
    return {f"{stem}.{part}": tensor for part, tensor in parts.items()}


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def whole_scales(weight, bits, group, sym):
    """Scales and zero points [out, groups] as GPTQ's quantiser finds them."""
    blocks = weight.reshape(weight.shape[0], -1, group)
    low, high = blocks.amin(-1).clamp(max=0), blocks.amax(-1).clamp(min=0)
    top = 2**bits - 1
    if sym:
        scale = 2 * torch.maximum(high, -low) / top
        return scale, torch.full_like(scale, 2 ** (bits - 1))
    scale = (high - low) / top
    return scale, torch.round(-low / scale)


def gptq_v1():
    source = Path(os.environ["AUTO_GPTQ"]) / "auto_gptq/nn_modules/qlinear/qlinear_cuda.py"
    quant = load(source, "qlinear_cuda").QuantLinear
    for bits, sym, order in [(2, 0, 0), (3, 0, 0), (4, 1, 1), (4, 0, 0), (8, 1, 0)]:
        linear = torch.nn.Linear(64, 32, bias=False).half().float()
        scale, zero = whole_scales(linear.weight.data, bits, 16, sym)
        scale = scale.half().float()
        g_idx = torch.arange(64) // 16
        if order:
            g_idx = g_idx[torch.randperm(64)]
        layer = quant(bits, 16, 64, 32, False, weight_dtype=torch.float16)
        layer.pack(linear, scale, zero.clone(), g_idx.to(torch.int32))
        layer.scales = layer.scales.half()
        parts = {n: getattr(layer, n) for n in ("qweight", "qzeros", "scales", "g_idx")}
        expected = layer(torch.eye(64).half()).t()
        config = {"quant_method": "gptq", "bits": bits, "group_size": 16, "desc_act": bool(order)}
        case = f"gptq_{bits}bit_{'sym' if sym else 'asym'}{'_act_order' if order else ''}"
        save(case, named(parts), {"quantization_config": config}, expected, "auto_gptq 0.7.1")


def gptq_v2():
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear

    for bits in (3, 4):
        linear = torch.nn.Linear(64, 32, bias=False).half()
        scale, zero = whole_scales(linear.weight.data.float(), bits, 32, False)
        layer = TorchLinear(bits, 32, False, True, 64, 32)
        g_idx = (torch.arange(64) // 32)[torch.randperm(64)].to(torch.int32)
        layer.pack(linear, scale.half(), zero, g_idx)
        layer.post_init()
        layer.eval()
        parts = {n: getattr(layer, n) for n in ("qweight", "qzeros", "scales", "g_idx")}
        config = {
            "quant_method": "gptq", "bits": bits, "group_size": 32, "desc_act": True,
            "sym": False, "checkpoint_format": "gptq_v2",
        }  # fmt: skip
        expected = layer.dequantize_weight().t()
        by = "gptqmodel 7.7.0"
        save(f"gptq_v2_{bits}bit", named(parts), {"quantization_config": config}, expected, by)


def awq():
    source = Path(os.environ["AUTO_AWQ"])
    packing = load(source / "awq/utils/packing_utils.py", "packing_utils")
    from torch import nn

    text = (source / "awq/modules/linear/gemm.py").read_text()
    text = text[text.index("class WQLinear_GEMM") :]
    scope = {"nn": nn, "torch": torch, "get_best_device": lambda: "cpu"}
    exec(text, scope)  # the class alone: the module's imports want a GPU
    linear = torch.nn.Linear(64, 32, bias=False).half()
    scale, zero = whole_scales(linear.weight.data.float(), 4, 32, False)
    layer = scope["WQLinear_GEMM"].from_linear(
        linear, 4, 32, scales=scale.t().contiguous().half(), zeros=zero.t().contiguous()
    )
    parts = {n: getattr(layer, n) for n in ("qweight", "qzeros", "scales")}
    expected = packing.dequantize_gemm(layer.qweight, layer.qzeros, layer.scales, 4, 32).t()
    config = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}
    save("awq_gemm", named(parts), {"quantization_config": config}, expected, "autoawq 0.2.9")


def bitsandbytes():
    import bitsandbytes.functional as functional

    by = "bitsandbytes 0.50.2"
    for kind, nested, dtype in [
        ("nf4", False, torch.float32),
        ("nf4", True, torch.bfloat16),
        ("fp4", True, torch.float16),
    ]:
        # The second quantisation has blocks of 256 scales: one case reaches into a second.
        shape, step = ((264, 64), 24) if dtype == torch.bfloat16 else ((18, 36), 1)
        weight = torch.randn(shape).to(dtype)
        packed, state = functional.quantize_4bit(
            weight, blocksize=64, compress_statistics=nested, quant_type=kind
        )
        expected = functional.dequantize_4bit(packed, state)
        stored = {f"weight.{part}": value for part, value in state.as_dict(packed=True).items()}
        config = {"quant_method": "bitsandbytes", "load_in_4bit": True}
        tensors = named({"weight": packed, **stored})
        case = f"bnb_{kind}{'_nested' if nested else ''}"
        save(case, tensors, {"quantization_config": config}, expected, by, step=step)
    codes, absmax, _ = functional.int8_vectorwise_quant(torch.randn(20, 32).half())
    expected = functional.int8_vectorwise_dequant(codes, absmax)
    parts = {"weight": codes, "SCB": absmax, "weight_format": torch.tensor(0, dtype=torch.uint8)}
    config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    save("bnb_int8", named(parts), {"quantization_config": config}, expected, by)


def compressed_tensors():
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams

    cases = {
        "ct_int4_group": ("pack-quantized", dict(num_bits=4, strategy="group", group_size=32)),
        "ct_int4_asym": (
            "pack-quantized", dict(num_bits=4, strategy="group", group_size=32, symmetric=False),
        ),
        "ct_int3_channel": (
            "pack-quantized", dict(num_bits=3, strategy="channel", symmetric=False),
        ),
        "ct_int8_channel": ("int-quantized", dict(num_bits=8, strategy="channel")),
        "ct_fp8_tensor": ("float-quantized", dict(num_bits=8, type="float", strategy="tensor")),
        "ct_fp8_block": (
            "float-quantized",
            dict(num_bits=8, type="float", strategy="block", block_structure=[16, 16]),
        ),
        "ct_mxfp8": (
            "mxfp8-quantized",
            dict(num_bits=8, type="float", strategy="group", group_size=32,
                 scale_dtype=torch.uint8),
        ),
        "ct_mxfp4": (
            "mxfp4-pack-quantized",
            dict(num_bits=4, type="float", strategy="group", group_size=32,
                 scale_dtype=torch.uint8),
        ),
        "ct_nvfp4": (
            "nvfp4-pack-quantized",
            dict(num_bits=4, type="float", strategy="tensor_group", group_size=16),
        ),
    }  # fmt: skip
    for case, (form, said) in cases.items():
        args = QuantizationArgs(**said)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        weight = torch.randn(20, 64) if said["strategy"] != "block" else torch.randn(32, 48)
        if "group_size" in said:
            blocks = weight.reshape(weight.shape[0], -1, said["group_size"])
            low, high = blocks.amin(-1), blocks.amax(-1)
        elif said["strategy"] == "channel":
            low, high = weight.amin(-1, keepdim=True), weight.amax(-1, keepdim=True)
        elif said["strategy"] == "block":
            blocks = weight.reshape(2, 16, 3, 16)
            low, high = blocks.amin((1, 3)), blocks.amax((1, 3))
        else:
            low, high = weight.amin().reshape(1), weight.amax().reshape(1)
        extra = {}
        if "nvfp4" in form:
            extra["weight_global_scale"] = 448 * 6 / weight.abs().amax().reshape(1)
            top = torch.maximum(-low, high) / 6 * extra["weight_global_scale"]
            scale, zero = top.to(torch.float8_e4m3fn).float(), torch.zeros_like(top)
        elif form.startswith("mx"):
            top = torch.maximum(-low, high) / (6 if "4" in form else 448)
            scale, zero = torch.exp2(torch.ceil(torch.log2(top))), torch.zeros_like(top)
        else:
            scale, zero = calculate_qparams(low, high, args)
        state = {"weight": weight, "weight_scale": scale, **extra}
        state["weight_zero_point"] = zero.to(
            torch.int8 if said.get("type") is None else scale.dtype
        )
        compressor = BaseCompressor.get_value_from_registry(form)
        stored = compressor.compress(state, scheme)
        expected = compressor.decompress(dict(stored), scheme)["weight"]
        groups = {"group_0": {"targets": ["Linear"], "weights": args.model_dump(mode="json")}}
        config = {"quant_method": "compressed-tensors", "format": form, "config_groups": groups}
        tensors = named({n: t.clone() for n, t in stored.items()})
        by = "compressed-tensors 0.20.0"
        save(case, tensors, {"quantization_config": config}, expected, by)


def mxfp4():
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    stem = "model.layers.0.mlp.experts.gate_up_proj"
    blocks = torch.randint(0, 256, (3, 8, 2, 16), dtype=torch.uint8)
    scales = torch.randint(110, 130, (3, 8, 2), dtype=torch.uint8)
    expected = convert_moe_packed_tensors(blocks, scales, dtype=torch.bfloat16)
    tensors = {f"{stem}_blocks": blocks, f"{stem}_scales": scales}
    config = {"quantization_config": {"quant_method": "mxfp4"}}
    # transformers turns the experts to [E, in, out]; here they are turned back.
    save("mxfp4_gpt_oss", tensors, config, expected.transpose(1, 2), "transformers 5.22.2", stem)


def fine_grained():
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize, _dequantize_fp8_weight

    by = "transformers 5.22.2"
    for case, shape, block in [
        ("fp8_blocks", (32, 48), [16, 16]),
        ("fp8_ragged", (20, 40), [16, 16]),
    ]:
        weight = torch.randn(shape).to(torch.float8_e4m3fn)
        grid = [-(-size // step) for size, step in zip(shape, block, strict=True)]
        scale = torch.rand(grid) + 0.5
        expected = _dequantize_fp8_weight(weight, scale, block, torch.float32)
        config = {"quant_method": "fp8", "weight_block_size": block}
        parts = {"weight": weight, "weight_scale_inv": scale}
        save(case, named(parts), {"quantization_config": config}, expected, by)
    codes = torch.randint(-128, 128, (12, 48), dtype=torch.int8)
    scale = torch.randint(120, 130, (12, 3), dtype=torch.uint8).view(torch.float8_e8m0fnu)
    expected = Fp8Dequantize(None)._dequantize_one(codes, scale, torch.float32)
    parts = {"weight": codes, "scale": scale}
    save(
        "fp4_in_int8", named(parts), {"quantization_config": {"quant_method": "fp8"}}, expected, by
    )


def modelopt():
    from modelopt.torch.quantization.qtensor.nvfp4_tensor import NVFP4QTensor

    weight = torch.randn(12, 64)
    tensor, scale, overall = NVFP4QTensor.quantize(weight, 16)
    expected = tensor.dequantize(
        torch.float32, scale=scale, double_scale=overall, block_sizes={-1: 16}
    )
    parts = {"weight": tensor._quantized_data, "weight_scale": scale, "weight_scale_2": overall}
    config = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    save(
        "modelopt_nvfp4", named(parts), {"quantization_config": config}, expected, "modelopt 0.47.0"
    )


def quanto():
    from optimum.quanto import absmax_scale, qfloat8, qint8, quantize_weight

    for kind in (qint8, qfloat8):
        weight = torch.randn(12, 40)
        scale = absmax_scale(weight, kind, axis=0)
        tensor = quantize_weight(weight, kind, 0, scale=scale)
        parts = {"weight._data": tensor._data, "weight._scale": tensor._scale}
        config = {"quantization_config": {"quant_method": "quanto"}}
        save(
            f"quanto_{kind.name}", named(parts), config, tensor.dequantize(), "optimum-quanto 0.2.7"
        )


if __name__ == "__main__":
    makers = (
        gptq_v1, gptq_v2, awq, bitsandbytes, compressed_tensors, mxfp4, fine_grained, modelopt,
        quanto,
    )  # fmt: skip
    for make in makers:
        torch.manual_seed(20)
        try:
            make()
        except Exception as error:
            print(make.__name__, type(error).__name__, error, file=sys.stderr)
