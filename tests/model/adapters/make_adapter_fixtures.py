"""Make the adapter fixtures: tiny adapters written by PEFT, and the weights that PEFT merges.

For each case a model with random weights gets an adapter with random numbers, saved with
`save_pretrained` and loaded anew into a fresh copy of the base; what `merge_and_unload` makes
of it is what kinprint has to reproduce. Run with a Python that has torch, transformers and
peft: `python make_adapter_fixtures.py data`. With a PEFT before 0.19, which took stacked experts
the other way round, the same command makes the cases of that time.
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import peft  # type: ignore[import-not-found]
import torch
import transformers  # type: ignore[import-not-found]
from peft import PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

SMALL: dict[str, Any] = {
    "vocab_size": 24, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "intermediate_size": 12, "max_position_embeddings": 16,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False,
}  # fmt: skip
GPT2: dict[str, Any] = {"num_hidden_layers": 1}
EXPERTS: dict[str, Any] = {"num_local_experts": 3, "num_hidden_layers": 1, "head_dim": 4}


class Picture(torch.nn.Module):  # type: ignore[misc]
    """Two convolutions, as the front of a model that sees or hears."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = torch.nn.Conv2d(3, 8, 2)
        self.point = torch.nn.Conv2d(8, 6, 1)
        self.sound = torch.nn.Conv1d(5, 7, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def built(kind: str, **changes: Any) -> Any:
    """A model with random weights and biases that are not zero."""
    torch.manual_seed(7)
    if kind == "picture":
        model: Any = Picture()
    else:
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **(SMALL | changes)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return model.eval()


def stored(model: Any) -> dict[str, torch.Tensor]:
    """Tensors under the names they have on disk, which may differ from those in memory."""
    if isinstance(model, Picture):
        return {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")


def made(case: str, out: Path, kind: str, config: Any, half: bool = False, **changes: Any) -> None:
    """Write one case: the base's weights that change (b_), the adapter (a_), the result (m_)."""
    base = built(kind, **changes)
    before = stored(base)
    torch.manual_seed(11)
    adapted = get_peft_model(copy.deepcopy(base), config)
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if parameter.requires_grad:
                noise = torch.randn_like(parameter) * 0.3
                parameter.copy_(parameter.abs() + noise.abs() if "magnitude" in name else noise)
    with tempfile.TemporaryDirectory() as folder:
        adapted.save_pretrained(folder)
        tensors = load_file(Path(folder) / "adapter_model.safetensors")
        if half:  # what most adapters are stored in; PEFT computes with the same numbers
            from safetensors.torch import save_file

            tensors = {name: tensor.bfloat16() for name, tensor in tensors.items()}
            save_file(tensors, Path(folder) / "adapter_model.safetensors", {"format": "pt"})
        written = json.loads((Path(folder) / "adapter_config.json").read_text())
        merged = PeftModel.from_pretrained(base, folder).merge_and_unload()
    after = stored(merged)
    changed = [name for name in before if not torch.equal(before[name], after[name])]
    assert changed, case
    shapes = {name: list(tensor.shape) for name, tensor in before.items()}
    meta = {
        "config": written, "shapes": shapes,
        "dtypes": sorted({str(tensor.dtype) for tensor in tensors.values()}),
        "peft": peft.__version__, "transformers": transformers.__version__,
    }  # fmt: skip
    arrays = {f"a_{n}": t.float().numpy() for n, t in tensors.items()}
    arrays |= {f"b_{n}": before[n].numpy() for n in changed}
    arrays |= {f"m_{n}": after[n].float().numpy() for n in changed}
    text = np.frombuffer(json.dumps(meta, default=str).encode(), np.uint8)
    np.savez_compressed(out / f"{case}.npz", meta=text, **arrays)
    print(case, changed, sorted(tensors)[:4])


def main(out: Path) -> None:
    lora = peft.LoraConfig
    qv: dict[str, Any] = {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "v_proj"]}
    stacks = ["experts.gate_up_proj", "experts.down_proj"]
    qwen = {**EXPERTS, "num_experts": 3, "num_experts_per_tok": 1, "moe_intermediate_size": 6}
    square = {**EXPERTS, "intermediate_size": 8}
    both = {"r": 2, "lora_alpha": 3, "target_modules": [], "target_parameters": stacks}
    down = both | {"target_parameters": stacks[1:]}
    old: dict[str, tuple[str, Any, dict[str, Any]]] = {
        "old_granitemoe": ("granitemoe", lora(**both), EXPERTS),
        "old_granitemoe_square": ("granitemoe", lora(**down), square),
        "old_gpt_oss": ("gpt_oss", lora(**down), square),
        "old_qwen3_moe": ("qwen3_moe", lora(**both | {"target_modules": ["q_proj"]}), qwen),
    }
    cases: dict[str, tuple[str, Any, dict[str, Any]]] = {
        "llama": ("llama", lora(**qv), {}),
        "llama_bf16": ("llama", lora(**qv), {"half": True, "num_hidden_layers": 1}),
        "rslora": ("llama", lora(**qv, use_rslora=True), {"num_hidden_layers": 1}),
        "patterns": ("llama", lora(**qv,
            rank_pattern={"q_proj": 2, r"^model\.layers\.1\.self_attn\.v_proj": 5},
            alpha_pattern={"layers.0.self_attn.q_proj": 3, r".*\.1\..*v_proj": 10}), {}),
        "dora": ("llama", lora(**qv, use_dora=True), {"num_hidden_layers": 1}),
        "gpt2": ("gpt2", lora(r=3, lora_alpha=5, target_modules=["c_attn", "c_proj"],
            fan_in_fan_out=True), GPT2),
        "gpt2_dora": ("gpt2", lora(r=3, lora_alpha=5, target_modules=["c_attn"],
            fan_in_fan_out=True, use_dora=True), GPT2),
        "gpt2_saved": ("gpt2", lora(r=3, lora_alpha=5, target_modules=["c_attn"],
            fan_in_fan_out=True, modules_to_save=["mlp.c_fc"]), GPT2),
        "embedding": ("llama", lora(r=3, lora_alpha=5, target_modules=["embed_tokens", "lm_head"]),
            {"num_hidden_layers": 1}),
        "saved": ("llama", lora(**qv, modules_to_save=["lm_head", "input_layernorm"]),
            {"num_hidden_layers": 1}),
        "lora_bias": ("qwen2", lora(**qv, lora_bias=True), {"num_hidden_layers": 1}),
        "trained_bias": ("qwen2", lora(**qv, bias="all"), {"num_hidden_layers": 1}),
        "tokens": ("llama", lora(**qv, trainable_token_indices=[7, 3, 21]),
            {"num_hidden_layers": 1}),
        "tokens_alone": ("llama", peft.TrainableTokensConfig(token_indices=[5, 2],
            target_modules=["embed_tokens"]), {"num_hidden_layers": 1}),
        "gpt_oss": ("gpt_oss", lora(r=2, lora_alpha=3, target_modules=["q_proj"],
            target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]), EXPERTS),
        "gpt_oss_square": ("gpt_oss", lora(**down), square),
        "granitemoe": ("granitemoe", lora(**both), EXPERTS),
        "granitemoe_square": ("granitemoe", lora(**down), square),
        "llama4": ("llama4_text", lora(**both),
            {**EXPERTS, "intermediate_size_mlp": 8, "interleave_moe_layer_step": 1}),
        "qwen3_moe": ("qwen3_moe", lora(**both | {"target_modules": ["q_proj"]}), qwen),
        "mixtral": ("mixtral", lora(r=2, lora_alpha=3, target_modules=[],
            target_parameters=["mlp.experts.gate_up_proj", "mlp.gate.weight"]), EXPERTS),
        "picture": ("picture", lora(r=2, lora_alpha=3,
            target_modules=["patch", "point", "sound"]), {}),
        "picture_dora": ("picture", lora(r=2, lora_alpha=3, use_dora=True,
            target_modules=["patch", "sound"]), {}),
        "adalora": ("llama", peft.AdaLoraConfig(init_r=4, target_r=2, lora_alpha=6, total_step=10,
            target_modules=["q_proj"]), {"num_hidden_layers": 1}),
        "loha": ("llama", peft.LoHaConfig(r=3, alpha=5, target_modules=["q_proj", "down_proj"]),
            {"num_hidden_layers": 1}),
        "ia3": ("qwen2", peft.IA3Config(target_modules=["k_proj", "down_proj"],
            feedforward_modules=["down_proj"]), {"num_hidden_layers": 1}),
        "ia3_gpt2": ("gpt2", peft.IA3Config(target_modules=["c_attn", "mlp.c_proj"],
            feedforward_modules=["mlp.c_proj"], fan_in_fan_out=True), GPT2),
        "norms": ("llama", peft.LNTuningConfig(target_modules=["input_layernorm"]),
            {"num_hidden_layers": 1}),
    }  # fmt: skip
    out.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    is_old = tuple(int(part) for part in peft.__version__.split(".")[:2]) < (0, 19)
    for case, (kind, config, options) in (old if is_old else cases).items():
        if len(sys.argv) == 2 or case in sys.argv[2:]:
            made(case, out, kind, config, **options)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
