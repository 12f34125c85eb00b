"""What a configuration says about quantisation, in one small record.

Names and shapes of the stored tensors decide what a weight is, module by module: ignore
lists, patterns and per-module overrides are thereby obeyed without being read. The
configuration is asked for what shapes cannot tell (which GPTQ format, how many bits are in
a word, the size of a ragged block) and for methods that kinprint cannot read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from kinprint.errors import printable
from kinprint.text import Message, message

_SCALED = "scaled"
# quant_method as it is written, and the family of layouts it belongs to.
_METHODS = {
    "gptq": "gptq",
    "awq": "awq",
    "fp8": _SCALED,
    "fbgemm_fp8": _SCALED,
    "finegrained_fp8": _SCALED,
    "mxfp8": _SCALED,
    "modelopt": _SCALED,
    "modelopt_fp4": _SCALED,
    "quark": _SCALED,
    "quanto": _SCALED,
    "compressed-tensors": "compressed-tensors",
    "bitsandbytes": "bitsandbytes",
    "mxfp4": "mxfp4",
    "mlx": "mlx",
}
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "talker_config")
# Endings that betray a method when no configuration does.
_TRACES = (
    (".bitsandbytes__nf4", "bitsandbytes"),
    (".bitsandbytes__fp4", "bitsandbytes"),
    (".SCB", "bitsandbytes"),
    (".weight_packed", "compressed-tensors"),
    ("_blocks", "mxfp4"),
    (".g_idx", "gptq"),
    (".qweight", "packed words"),
    (".weight_scale_inv", _SCALED),
    (".weight_scale", _SCALED),
    (".W_q", "hqq"),
)
_MLX_MODES = frozenset({"affine", "mxfp4", "mxfp8", "nvfp4"})
_AWQ_VERSIONS = frozenset({"", "gemm", "exllama", "ipex"})
_SPARSE = ("sparse-", "marlin", "mxfp6")


class Scheme(Struct, frozen=True):
    """How a model says it is quantised.

    `method` is its own word for it, `family` the layouts to expect. `group` and `bits` are
    None where nothing is said or modules differ. `stored_less_one` is GPTQ's first format.
    `modules` are the bits and group sizes of MLX's modules that differ from the others.
    `options` are the bits and group sizes of compressed-tensors' groups. `refusal`, where
    there is one, names what of it cannot be read.
    """

    method: str
    family: str
    bits: int | None = None
    group: int | None = None
    block: tuple[int, int] | None = None
    stored_less_one: bool = True
    options: tuple[tuple[int, int | None], ...] = ()
    modules: Mapping[str, tuple[int | None, int | None]] = {}
    refusal: Message | None = None


def scheme_for(config: Mapping[str, Any], names: Collection[str] = ()) -> Scheme | None:
    """The quantisation that a configuration speaks of, or that tensor names betray."""
    said = _section(config)
    if said is None:
        return _betrayed(names)
    method = _word(said, "quant_method", "method") or _implied(said, names)
    family = _METHODS.get(method, "")
    if method in ("auto-round", "intel/auto-round"):
        family = _auto_round(said)
    refusal = None if family else message("note.scheme.method", method=_short(method))
    bits, group = _whole(said, "bits", "w_bit"), _whole(said, "group_size", "q_group_size")
    if family == "gptq":
        form = _word(said, "checkpoint_format", "format")
        if form not in ("", "gptq", "gptq_v2"):
            refusal = message("note.scheme.gptq", format=_short(form))
        loose = bool(said.get("dynamic")) or bool(said.get("extra_config"))
        return Scheme(
            method, family, None if loose else bits, None if loose else group,
            stored_less_one=form != "gptq_v2", refusal=refusal,
        )  # fmt: skip
    if family == "mlx":
        return _by_module(method, said, bits, group)
    if family == "awq":
        version = _word(said, "version", "format", "checkpoint_format")
        if version not in _AWQ_VERSIONS or bits not in (None, 4):
            refusal = message("note.scheme.awq", layout=_short(version), bits=bits or 4)
        return Scheme(method, family, 4, group, refusal=refusal)
    if family == "compressed-tensors":
        form = _word(said, "format")
        if form.startswith(_SPARSE):
            refusal = message("note.scheme.compressed-tensors", format=_short(form))
        return _grouped(method, said, refusal)
    return Scheme(
        method, family, bits, group, _pair(said.get("weight_block_size")), refusal=refusal
    )


def _section(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The part about quantisation; old files and wrappers keep it elsewhere."""
    for holder in (config, *(config.get(name) for name in _NESTED)):
        if not isinstance(holder, Mapping):
            continue
        for key in ("quantization_config", "compression_config", "quantization"):
            found = holder.get(key)
            if isinstance(found, Mapping) and found:
                return found
    return None


def _implied(said: Mapping[str, Any], names: Collection[str]) -> str:
    """The method of a section that does not name it."""
    known = _word(said, "mode") in _MLX_MODES or _is_affine(names)
    if {"bits", "group_size"} <= said.keys() and known:
        return "mlx"
    if said.get("load_in_8bit") or said.get("load_in_4bit"):
        return "bitsandbytes"
    if "config_groups" in said:
        return "compressed-tensors"
    if "quant_algo" in said:
        return "modelopt"
    return "gptq" if "desc_act" in said else "unnamed method"


def _is_affine(names: Collection[str]) -> bool:
    """Whether weights have scales and biases beside them, as MLX writes them."""
    return any(
        name.endswith(".biases") and f"{name.removesuffix('biases')}scales" in names
        for name in names
    )


def _by_module(method: str, said: Mapping[str, Any], bits: int | None, group: int | None) -> Scheme:
    """MLX: one mode for all, and sections for modules that are packed in another way."""
    own = {name: one for name, one in said.items() if isinstance(one, Mapping)}
    modes = {_word(one, "mode") or "affine" for one in (said, *own.values())}
    others = sorted(modes - _MLX_MODES)
    refusal = message("note.scheme.mlx", mode=_short(others[0])) if others else None
    modules = {
        name: (_whole(one, "bits") or bits, _whole(one, "group_size") or group)
        for name, one in own.items()
    }
    return Scheme(method, "mlx", bits, group, modules=modules, refusal=refusal)


def _auto_round(said: Mapping[str, Any]) -> str:
    packing = _word(said, "packing_format")
    if packing in ("auto_round:gptq", "auto_round:auto_gptq"):
        return "gptq"
    return "awq" if packing in ("auto_round:awq", "auto_round:auto_awq") else ""


def _grouped(method: str, said: Mapping[str, Any], refusal: Message | None) -> Scheme:
    options: list[tuple[int, int | None]] = []
    blocks: set[tuple[int, int] | None] = set()
    groups = said.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            continue
        bits, size = _whole(weights, "num_bits"), _whole(weights, "group_size")
        if bits is not None and 1 <= bits <= 8 and (bits, size) not in options:
            options.append((bits, size))
        blocks.add(_pair(weights.get("block_structure")))
    block = blocks.pop() if len(blocks) == 1 else None
    return Scheme(
        method, "compressed-tensors", block=block, options=tuple(options), refusal=refusal
    )


def _betrayed(names: Collection[str]) -> Scheme | None:
    ends = {name.rpartition(".")[2] for name in names}  # few, however many names there are
    tails = [f".{end}" for end in ends]
    for ending, method in _TRACES:
        if any(tail.endswith(ending) for tail in tails):
            if method == "mxfp4" and not any(tail.endswith("_scales") for tail in tails):
                continue
            known = method in _METHODS or method in (_SCALED, "packed words")
            family = _METHODS.get(method, method) if known else ""
            unknown = message("note.scheme.method", method=method)
            return Scheme(method, family, refusal=None if known else unknown)
    return None


def _short(word: str) -> str:
    """A stranger's word as a message may repeat it."""
    return printable(word, 60)


def _word(said: Mapping[str, Any], *keys: str) -> str:
    for key in keys:
        value = said.get(key)
        if isinstance(value, str):
            return value.lower()
    return ""


def _whole(said: Mapping[str, Any], *keys: str) -> int | None:
    for key in keys:
        value = said.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _pair(value: object) -> tuple[int, int] | None:
    if isinstance(value, list | tuple) and len(value) == 2:
        first, second = value
        if isinstance(first, int) and isinstance(second, int) and min(first, second) > 0:
            return first, second
    return None
