"""How a tensor is stored, from its role, its shape and its family: the table made concrete.

A fused tensor is only useful if its rows can be told apart, and a wrong order would compare
queries with keys without anyone noticing; so sizes are checked against the shape, and where
they contradict the tensor stays whole and says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any

from msgspec.structs import replace

from kinprint.model.layout.parts import IN_OUT, OUT_IN, Layout, StoredPart, interleave
from kinprint.model.layout.sizes import Sizes, table, tower_of
from kinprint.model.names.patterns import unwrapped
from kinprint.records import Role, weight_of
from kinprint.text import Message, message

# Roles one side of which is the hidden width, so that a shape tells its orientation.
_BY_HIDDEN = (
    Role.QKV, Role.GATE, Role.UP, Role.DOWN, Role.GATE_UP,
    Role.SHARED_GATE, Role.SHARED_UP, Role.SHARED_DOWN,
)  # fmt: skip
# Roles that are looked up or scale channels: Conv1D and the like never hold them.
_NOT_LINEAR = (
    Role.EMBED, Role.POS_EMBED, Role.LM_HEAD, Role.ROUTER, Role.SSM, Role.OTHER,
)  # fmt: skip
# Roles that may have an axis for their heads.
_HEADED = (Role.Q, Role.K, Role.V, Role.O)
# Roles whose rows rotary embedding turns, which some files therefore store in pairs.
_PAIRED = (Role.Q, Role.K)
# Words for sizes that are a share of the tensor.
_SHARES = {"half": (1, 2), "third": (1, 3), "seventh": (1, 7), "four sevenths": (4, 7)}
# Fused roles that a tower's tensors have, told by their detail.
_IN_TOWERS = (Role.QKV, Role.GATE_UP)


def layout_of(
    role: str,
    shape: tuple[int, ...],
    config: Mapping[str, Any],
    *,
    name: str = "",
    detail: str | None = None,
    layer: int | None = None,
    format: str = "safetensors",
    gguf: Mapping[str, object] | None = None,
) -> Layout:
    """The layout of one tensor.

    `detail` refines a role ("qkv.bias" says whose bias it is, "kv_fused" what an "other"
    is); `gguf` is a GGUF file's metadata, where there is no configuration.
    """
    sizes = Sizes(config, gguf, layer)
    name = unwrapped(name)
    owner = weight_of(detail) if role == Role.BIAS and detail else role
    bias = role == Role.BIAS
    is_gguf = format == "gguf" or gguf is not None
    if len(shape) == 3 and owner in _HEADED and _any(sizes.families, table()["folded_heads"]):
        shape = (shape[0], shape[1] * shape[2])
        layout = Layout(
            owner, shape, OUT_IN if owner == Role.O else IN_OUT, int(owner != Role.O), ()
        )
        return replace(layout, parts=(StoredPart(owner, 0, layout.outputs, layout.outputs),))
    layout = _whole_layout(owner, shape, sizes, name, bias, is_gguf)
    if is_gguf and len(shape) == 3 and detail in table()["stacked_heads"]:
        return _stacked_heads(layout, table()["stacked_heads"][detail])
    if owner.startswith("norm") and not bias:
        return replace(layout, norm_offset=_norm_offset(sizes, name, is_gguf))
    kind = "kv" if detail == "kv_fused" else owner
    inside = weight_of(detail) if role == Role.OTHER and detail else None
    if inside in _IN_TOWERS:  # of a tower for pictures or sound
        kind, sizes = f"tower_{inside}", Sizes(tower_of(config, name), None, layer)
    layout = _split(layout, kind, detail or "", sizes, name, is_gguf)
    return _pair(layout, sizes, name, is_gguf)


def _whole_layout(
    role: str, shape: tuple[int, ...], sizes: Sizes, name: str, bias: bool, is_gguf: bool
) -> Layout:
    """Orientation and stacked experts, with the tensor as one part."""
    tables = table()
    experts = 0
    flat = False
    if role.startswith("shared_"):
        experts = shape[0] if len(shape) == (2 if bias else 3) else 0
    elif role.startswith("expert_"):
        flat = _any(sizes.families, tables["experts_flat"]) and len(shape) == 2 and not is_gguf
        stacked = len(shape) >= (2 if bias else 3)
        experts = (sizes.get("experts") or 0) if flat else shape[0] if stacked else 0
        flat = flat and experts > 0 and shape[0] % experts == 0
        experts = experts if flat or stacked else 0
    warnings: list[Message] = []
    first = 1 if experts and not flat else 0
    if bias or len(shape) < 2:
        orient, axis = OUT_IN, _bias_axis(shape, first)
    else:
        orient = _orientation(role, shape, sizes, name, experts, flat, is_gguf, warnings)
        axis = len(shape) - 1 if orient == IN_OUT else first
    layout = Layout(role, shape, orient, axis, (), experts, flat, warnings=tuple(warnings))
    rows = layout.outputs
    return replace(layout, parts=(StoredPart(role, 0, rows, rows),))


def _bias_axis(shape: tuple[int, ...], first: int) -> int:
    """The axis that holds a bias: the last one, or the first where each head has a row."""
    several = prod(shape[first:-1]) > 1
    return first if several else max(len(shape) - 1, 0)


def _stacked_heads(layout: Layout, orient: str) -> Layout:
    """Heads of latent attention one upon another, each a matrix of its own."""
    axis = 2 if orient == IN_OUT else 1
    stack = replace(layout, orient=orient, axis=axis, experts=layout.shape[0])
    return replace(stack, parts=(StoredPart(layout.role, 0, stack.outputs, stack.outputs),))


def _orientation(
    role: str, shape: tuple[int, ...], sizes: Sizes, name: str, experts: int, flat: bool,
    is_gguf: bool, warnings: list[Message],
) -> str:  # fmt: skip
    """Which way round a matrix is stored: the family's habit, checked against the shape."""
    tables = table()
    if is_gguf:
        return OUT_IN
    if re.search(tables["in_out_names"], name):
        return IN_OUT
    if flat:
        return IN_OUT if role == Role.EXPERT_DOWN else OUT_IN
    kernel = re.search(tables["kernel_names"], name) is not None
    if not experts:
        linear = role not in _NOT_LINEAR and not role.startswith("norm")
        if role == Role.ROUTER and shape == (sizes.get("hidden"), sizes.get("experts")):
            return IN_OUT
        named = linear and re.search(tables["conv1d_names"], name) is not None
        conv1d = named and _any(sizes.families, tables["conv1d"])
        habit = IN_OUT if conv1d != (kernel and len(shape) == 2) else OUT_IN
        if role not in _BY_HIDDEN or len(shape) != 2:
            return habit
    elif len(shape) != 3 or re.search(tables["experts_out_in_names"], name):
        return OUT_IN
    else:
        habit = IN_OUT if kernel or _any(sizes.families, tables["experts_in_out"]) else OUT_IN
    hidden = None if sizes.value("depths") else sizes.get("hidden")  # widths differ by stage
    seen = _seen(role, shape, hidden) or habit
    # where nobody said how experts are stacked, their shape is all there is to go by
    if seen != habit and (habit == IN_OUT or not experts):
        warnings.append(message("note.layout.orientation", seen=seen, habit=habit))
    return seen


def _seen(role: str, shape: tuple[int, ...], hidden: int | None) -> str | None:
    """Orientation by the shape alone: hidden is the input of gate and up, the output of down."""
    if hidden is None or (shape[-2] == hidden) == (shape[-1] == hidden):
        return None
    outputs_last = (shape[-1] == hidden) == role.endswith("down")
    return IN_OUT if outputs_last else OUT_IN


def _norm_offset(sizes: Sizes, name: str, is_gguf: bool) -> float:
    """What to add to a stored norm gain: 1 where the family stores the gain less one."""
    tables = table()
    if is_gguf or not _any(sizes.families, tables["offset_norms"]):
        return 0.0
    own = [tables["offset_norms_except"].get(family) for family in sizes.families]
    plain = [tables["offset_norms_not"], *filter(None, own)]
    return 0.0 if any(re.search(words, name) for words in plain) else 1.0


def _split(
    layout: Layout, kind: str, detail: str, sizes: Sizes, name: str, is_gguf: bool
) -> Layout:
    """Divide a fused tensor by the first rule that fits; whole if none does."""
    for rule in table()["split"]:
        if not _is_about(rule, kind) or layout.outputs % rule.get("multiple", 1):
            continue
        if _fits(rule, kind, detail, sizes, name, is_gguf):
            return _apply(layout, rule, sizes)
    return layout


def _is_about(rule: Mapping[str, Any], kind: str) -> bool:
    """Whether a rule is about tensors of a role, or of whichever role."""
    return kind == rule["role"] if "role" in rule else kind in rule.get("roles", (kind,))


def _fits(
    rule: Mapping[str, Any], kind: str, detail: str, sizes: Sizes, name: str, is_gguf: bool
) -> bool:
    told = "detail" in rule and rule["detail"] == detail  # a detail says as much as a name
    if "detail" in rule and not told and "name" not in rule:
        return False
    if "families" in rule and not _any(sizes.families, rule["families"]):
        return False
    if rule.get("format") == "gguf" and not is_gguf:
        return False
    if "name" in rule and not told and kind != "kv" and not re.search(rule["name"], name):
        return False
    wanted: Mapping[str, Any] = rule.get("when", {})
    return all(_stated(sizes, key) == value for key, value in wanted.items())


def _stated(sizes: Sizes, key: str) -> Any:
    """What the configuration says, what its family takes for granted, or false."""
    found = sizes.value(key)
    for family in sizes.families if found is None else ():
        found = table()["defaults"].get(family, {}).get(key, found)
    return found or False


def _apply(layout: Layout, rule: Mapping[str, Any], sizes: Sizes) -> Layout:
    """Parts of a fused tensor, or a warning where the sizes contradict its shape."""
    outputs = layout.outputs
    if any(sizes.product(whole) == outputs for whole in rule.get("or_whole", ())):
        return layout  # the same role, stored alone
    choices = rule.get("kv")
    tried: list[Message] = []
    for choice in choices if isinstance(choices, list) else [choices]:
        heads = choice if isinstance(choice, int) or choice is None else sizes.get(choice)
        known = sizes if heads is None else sizes.replaced("kv_heads", heads)
        rows = [(part, _rows_of(part, rule, known, outputs)) for part in rule["parts"]]
        repeat = _repeat(rule["repeat"], known, outputs)
        clause = _contradiction(rows, repeat, outputs)
        if clause is None:
            parts = interleave([(part, count or 0) for part, count in rows], repeat or 1)
            if rule.get("known", True):
                return replace(layout, parts=parts)
            order = ", ".join(rule["parts"])
            doubt = message("note.layout.order", order=order)
            return replace(layout, parts=parts, known=False, warnings=(*layout.warnings, doubt))
        tried.append(clause)
    return replace(layout, known=False, warnings=(*layout.warnings, tried[0]))


def _rows_of(part: str, rule: Mapping[str, Any], sizes: Sizes, outputs: int) -> int | None:
    names = rule.get("sizes", {}).get(part) or table()["sizes"][part]
    if names[0] not in _SHARES:
        return sizes.product(names)
    some, of = _SHARES[names[0]]
    return outputs * some // of


def _repeat(word: int | str, sizes: Sizes, outputs: int) -> int | None:
    if isinstance(word, int):
        return word
    return outputs // 2 if word == "units" else sizes.get(word)


def _contradiction(
    rows: list[tuple[str, int | None]], repeat: int | None, outputs: int
) -> Message | None:
    """Why these parts cannot make up a tensor, as a clause; None if they can."""
    shown = ", ".join(f"{part}:{'?' if count is None else count}" for part, count in rows)
    if repeat is None or any(count is None for _, count in rows):
        return message("note.layout.no-split", rows=outputs, parts=shown)
    if sum(count or 0 for _, count in rows) != outputs:
        return message("note.layout.other-rows", rows=outputs, parts=shown)
    if any((count or 0) % repeat for _, count in rows):
        return message("note.layout.no-share", parts=shown, repeat=repeat)
    return None


def _pair(layout: Layout, sizes: Sizes, name: str, is_gguf: bool) -> Layout:
    """Mark q and k rows that are stored in pairs, so that they are read in halves."""
    tables = table()
    native = re.search(tables["paired_names"], name) is not None
    if not native and not (is_gguf and _any(sizes.families, tables["gguf_paired"])):
        return layout
    if not any(part.role in _PAIRED for part in layout.parts):
        return layout
    width = sizes.get("head_dim")
    if width is None or width % 2:
        clause = message("note.layout.pairs")
        return replace(layout, known=False, warnings=(*layout.warnings, clause))
    parts = tuple(
        replace(part, paired=width) if part.role in _PAIRED and part.rows % width == 0 else part
        for part in layout.parts
    )
    return replace(layout, parts=parts)


def _any(families: tuple[str, ...], listed: list[str]) -> bool:
    return any(family in listed for family in families)
