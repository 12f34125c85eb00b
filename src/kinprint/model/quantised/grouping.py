"""Stored tensors grouped under the logical weight that they hold together.

A weight is found by the tensor that carries its codes; its companions stand beside it under
names that every format makes from the same stem. What has no companions is no business of
this room: it is read as it is. A codec is loaded with the first weight that it is for, as most
models have none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kinprint.errors import BadQuantisation
from kinprint.model.quantised.codes import EXPONENTS, FLOATS, FP8
from kinprint.model.quantised.schemes import Scheme, scheme_for
from kinprint.model.quantised.weight import Codec, QuantisedWeight, conflict
from kinprint.records import TensorSpec
from kinprint.text import message

Specs = Mapping[str, TensorSpec]

# Scales by what they add to the name of their weight, and what stands before a scale over
# the whole tensor. Weights of Linear layers end in ".weight"; stacked experts do not.
_SCALES = ("_scale_inv", "_scale", "_weight_scale", "_weight_scale_inv", "._scale")
_OVERALL = ("_scale_2", "_weight_scale_2", "_global_scale")
_WORDS = ("qzeros", "scales", "g_idx")
_PACKED = ("_scale", "_zero_point", "_shape", "_g_idx", "_global_scale")
_NOWHERE = Scheme("", "")
_EIGHT = FP8 | {"I8", "U8"}
_HOLDS_FOUR = _EIGHT | FLOATS  # bitsandbytes may store its bytes under any type
_ABSMAX = ".absmax"
_WORD = "U32"
_SCALE_TYPES = FLOATS | EXPONENTS
_SCALE_TYPES_OF_FP4 = EXPONENTS | {"F8_E4M3"}


def logical_weights(
    specs: Specs, config: Mapping[str, Any], kinds: Collection[TensorSpec] = ()
) -> dict[str, QuantisedWeight]:
    """Every quantised weight of a model by its logical name; the other tensors are plain.

    `kinds` are tensors of all types and ends of names that there are, if they are known.
    Raises where the method is one that kinprint cannot read, and where the tensors of a
    weight contradict each other: numbers from either would be wrong without a sign of it.
    """
    kinds = kinds or specs.values()
    scheme = scheme_for(config, [one.name for one in kinds])
    if scheme is not None and scheme.refusal:
        cause = message("cause.quantised.method", method=scheme.refusal)
        raise BadQuantisation(file="config.json", cause=cause)
    found: dict[str, QuantisedWeight] = {}
    four = any(one.name.endswith(_ABSMAX) for one in kinds)
    if not (four or any(map(_holds_codes, kinds))):
        return found
    for name, spec in specs.items():
        if not (four or _holds_codes(spec)):
            continue
        weight = _weight(name, spec, specs, scheme or _NOWHERE)
        if weight is None:
            continue
        own = weight.name == name or weight.name not in specs or weight.name in _names(weight)
        if weight.name in found or not own:
            raise conflict(spec, "cause.quantised.twice", weight=weight.name)
        found[weight.name] = weight
    return found


def _holds_codes(spec: TensorSpec) -> bool:
    """Whether a tensor looks as if it held the codes of a weight."""
    return spec.dtype in _EIGHT or spec.dtype == _WORD or spec.name.endswith(_MARKS)


def _names(weight: QuantisedWeight) -> set[str]:
    return {spec.name for spec in weight.parts.values()}


def _weight(name: str, spec: TensorSpec, specs: Specs, scheme: Scheme) -> QuantisedWeight | None:
    """The weight whose codes this tensor holds, if it holds any."""
    if name.endswith(_MARKS):
        ending, build = next(one for one in _ENDINGS.items() if name.endswith(one[0]))
        return build(name.removesuffix(ending), spec, specs, scheme)
    if spec.dtype in _HOLDS_FOUR and name + _ABSMAX in specs:
        return _four_bits(name, spec, specs)
    if spec.dtype in _EIGHT:
        return _eight_bits(name, spec, specs, scheme)
    return _mlx(name, spec, specs, scheme) if spec.dtype == _WORD else None


def _mlx(name: str, spec: TensorSpec, specs: Specs, scheme: Scheme) -> QuantisedWeight | None:
    """MLX's weights, with scales beside them, and biases if they are whole numbers."""
    stem = name.removesuffix(".weight")
    scales, biases = specs.get(f"{stem}.scales"), specs.get(f"{stem}.biases")
    if stem == name or scales is None or (biases is None and scales.dtype != "U8"):
        return None
    from kinprint.model.quantised.affine import affine, floats_in_words

    if biases is None:
        parts = {"weight": spec, "scales": scales}
        return QuantisedWeight(name, floats_in_words(spec, scales), parts)
    parts = {"weight": spec, "scales": scales, "biases": biases}
    bits, group = scheme.modules.get(stem, (scheme.bits, scheme.group))
    return QuantisedWeight(name, affine(parts, bits, group), parts)


def _from_words(
    stem: str, spec: TensorSpec, specs: Specs, scheme: Scheme
) -> QuantisedWeight | None:
    """GPTQ or AWQ, which share names and not shapes."""
    parts = {"qweight": spec} | {
        part: specs[f"{stem}.{part}"] for part in _WORDS if f"{stem}.{part}" in specs
    }
    scales = parts.get("scales")
    if scales is None:
        raise conflict(spec, "cause.quantised.words-alone")
    for part, tensor in parts.items():
        if len(tensor.shape) != (1 if part == "g_idx" else 2):
            raise conflict(tensor, "cause.quantised.packed-layer", shape=list(tensor.shape))
        if part in ("qweight", "qzeros", "g_idx") and tensor.dtype != "I32":
            raise conflict(tensor, "cause.quantised.no-words", dtype=tensor.dtype)
    across = spec.shape[1] == scales.shape[1]
    is_gptq = across if scheme.family not in ("gptq", "awq") else scheme.family == "gptq"
    from kinprint.model.quantised.columns import awq, gptq

    codec: Codec
    if is_gptq:
        codec = gptq(parts, scheme.bits, scheme.group, scheme.stored_less_one)
    else:
        codec = awq(parts, scheme.group)
    return QuantisedWeight(f"{stem}.weight", codec, parts)


def _from_packed(
    stem: str, spec: TensorSpec, specs: Specs, scheme: Scheme
) -> QuantisedWeight | None:
    """compressed-tensors: whole numbers in words, or fp4 in bytes."""
    parts = {f"weight{end}": specs[stem + end] for end in _PACKED if stem + end in specs}
    parts["weight_packed"] = spec
    scale = parts.get("weight_scale")
    if scale is None:
        if not stem.endswith(".weight"):
            return None
        raise conflict(spec, "cause.quantised.packed-alone")
    if len(spec.shape) < 2 or not scale.shape:
        raise conflict(spec, "cause.quantised.packed-shape", shape=list(spec.shape))
    codec: Codec
    if spec.dtype == "U8":
        from kinprint.model.quantised.fp4 import fp4

        _refuse_beside(spec, parts.get("weight_zero_point"))
        codec = fp4(spec, scale, parts.get("weight_global_scale"))
    elif spec.dtype == "I32":
        from kinprint.model.quantised.packed import packed

        _refuse_beside(spec, parts.get("weight_global_scale"))
        codec = packed(parts, scheme.options)
    else:
        raise conflict(spec, "cause.quantised.no-packing", dtype=spec.dtype)
    return QuantisedWeight(stem, codec, parts)


def _from_blocks(
    stem: str, spec: TensorSpec, specs: Specs, scheme: Scheme
) -> QuantisedWeight | None:
    """gpt-oss's MXFP4; other tensors may end in the same letters."""
    scales = specs.get(f"{stem}_scales")
    if scales is None or spec.dtype != "U8" or scales.dtype not in EXPONENTS:
        return None
    from kinprint.model.quantised.fp4 import mxfp4_blocks

    parts = {"blocks": spec, "scales": scales}
    return QuantisedWeight(stem, mxfp4_blocks(spec, scales), parts)


def _from_quanto(
    stem: str, spec: TensorSpec, specs: Specs, scheme: Scheme
) -> QuantisedWeight | None:
    """optimum-quanto's qint8 and qfloat8; its narrower types are refused."""
    scale = specs.get(f"{stem}._scale")
    if scale is None:
        return None
    if spec.dtype not in FP8 | {"I8"} or f"{stem}._shift" in specs:
        raise conflict(spec, "cause.quantised.quanto")
    from kinprint.model.quantised.scaled import scaled

    return QuantisedWeight(stem, scaled(spec, scale), {"weight": spec, "scale": scale})


def _four_bits(name: str, spec: TensorSpec, specs: Specs) -> QuantisedWeight:
    parts = {"weight": spec}
    for part in ("absmax", "quant_map", "nested_absmax", "nested_quant_map"):
        if f"{name}.{part}" in specs:
            parts[part] = specs[f"{name}.{part}"]
    for kind in ("nf4", "fp4"):
        state = f"quant_state.bitsandbytes__{kind}"
        if f"{name}.{state}" in specs:
            parts[state] = specs[f"{name}.{state}"]
    from kinprint.model.quantised.bnb4 import bnb4

    return QuantisedWeight(name, bnb4(parts), parts)


def _eight_bits(
    name: str, spec: TensorSpec, specs: Specs, scheme: Scheme
) -> QuantisedWeight | None:
    """fp8, int8 or bytes of fp4, told apart by the types of weight and scale."""
    stem = name.removesuffix(".weight")
    if spec.dtype == "I8" and f"{stem}.SCB" in specs:
        from kinprint.model.quantised.scaled import bitsandbytes_int8

        absmax, layout = specs[f"{stem}.SCB"], specs.get(f"{stem}.weight_format")
        parts = {"weight": spec, "SCB": absmax} | ({"weight_format": layout} if layout else {})
        return QuantisedWeight(name, bitsandbytes_int8(spec, absmax, layout), parts)
    scale = _first(specs, name, _SCALES)
    if scale is None and stem != name:  # DeepSeek's own naming: `wq_a.weight`, `wq_a.scale`
        scale = specs.get(f"{stem}.scale")
    if scale is None or not spec.shape:
        return None
    parts = {"weight": spec, "scale": scale}
    overall = _first(specs, name, _OVERALL)
    zero = specs.get(f"{name}_zero_point")
    if overall is not None:
        parts["overall"] = overall
    if zero is not None:
        parts["zero"] = zero
    return QuantisedWeight(name, _by_types(spec, scale, overall, zero, scheme), parts)


def _first(specs: Specs, name: str, endings: Iterable[str]) -> TensorSpec | None:
    for ending in endings:
        if (found := specs.get(name + ending)) is not None:
            return found
    return None


def _by_types(
    spec: TensorSpec,
    scale: TensorSpec,
    overall: TensorSpec | None,
    zero: TensorSpec | None,
    scheme: Scheme,
) -> Codec:
    eight = spec.dtype in FP8 and scale.dtype in _SCALE_TYPES
    if eight or (spec.dtype == "I8" and scale.dtype in FLOATS):
        from kinprint.model.quantised.scaled import scaled

        return scaled(spec, scale, zero, scheme.block, overall)
    if len(spec.shape) > 1 and scale.dtype in _SCALE_TYPES_OF_FP4:
        _refuse_beside(spec, zero)
        from kinprint.model.quantised.fp4 import fp4

        return fp4(spec, scale, overall)
    raise conflict(spec, "cause.quantised.types", dtype=spec.dtype, scales=scale.dtype)


def _refuse_beside(codes: TensorSpec, companion: TensorSpec | None) -> None:
    """Refuse codes beside a tensor that those of their kind do not have: it may change them."""
    if companion is not None:
        raise conflict(codes, "cause.quantised.beside", tensor=companion.name)


_ENDINGS: dict[str, Callable[[str, TensorSpec, Specs, Scheme], QuantisedWeight | None]] = {
    ".qweight": _from_words,
    "_packed": _from_packed,
    "_blocks": _from_blocks,
    "._data": _from_quanto,
}
_MARKS = tuple(_ENDINGS)
