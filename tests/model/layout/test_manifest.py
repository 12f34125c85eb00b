"""The layouts of many architectures, against what tracing their forward passes showed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kinprint.model.layout import Layout, layout_of, pattern_of
from tests.model.architectures import ARCHITECTURES

# Zamba multiplies these from the left of its activations (out by in, once for each head);
# the trace took them for the second factor of a product.
_TRACED_WRONG = ("mamba.dt_proj_weight", "mamba.x_proj_weight")


def _tensors() -> Iterator[tuple[str, dict[str, Any], Layout]]:
    for entry, model in ARCHITECTURES.items():
        for tensor in model["tensors"]:
            layout = layout_of(
                tensor["role_truth"],
                tuple(tensor["shape"]),
                model["config"] | {"model_type": model["model_type"]},
                name=tensor["name"],
                detail=tensor.get("role_detail", ""),
                layer=tensor["layer"],
            )
            yield entry, tensor, layout


def test_every_pattern_comes_out_the_same() -> None:
    wrong = []
    seen = 0
    for entry, tensor, layout in _tensors():
        if "layout" not in tensor:
            continue
        seen += 1
        expected = (tensor["layout"]["pattern"], tensor["layout"]["dim"])
        # flat experts lie along the rows whichever way round each of them is stored
        found = (pattern_of(layout), 0 if layout.flat else layout.axis)
        if found != expected or layout.warnings or not layout.known:
            wrong.append((entry, tensor["name"], expected, found, layout.warnings))
    assert not wrong
    assert seen > 100


def test_every_orientation_comes_out_the_same() -> None:
    wrong = []
    for entry, tensor, layout in _tensors():
        if "orient" in tensor and not tensor["name"].endswith(_TRACED_WRONG):
            found = layout.orient
            if found != tensor["orient"]:
                wrong.append((entry, tensor["name"], tensor["shape"], tensor["orient"], found))
    assert not wrong


def test_every_offset_norm_is_known() -> None:
    wrong = []
    for entry, tensor, layout in _tensors():
        if "norm_kind" in tensor and not tensor["role_truth"].startswith("other"):
            expected = float(tensor["norm_kind"]["offset"])
            if layout.norm_offset != expected:
                wrong.append((entry, tensor["name"], expected, layout.norm_offset))
    assert not wrong


def test_nothing_else_is_split_or_doubted() -> None:
    wrong = []
    for entry, tensor, layout in _tensors():
        # the trace says nothing about the parts of state spaces and linear attention
        extra = layout.fused and "layout" not in tensor and tensor["role_truth"] != "bias"
        if layout.warnings or (extra and tensor["role_truth"] != "ssm"):
            wrong.append((entry, tensor["name"], pattern_of(layout), layout.warnings))
    assert not wrong


def test_experts_are_counted() -> None:
    for entry, tensor, layout in _tensors():
        stacked = str(tensor["expert"]).removeprefix("stacked:")
        if str(tensor["expert"]).startswith("stacked") and tensor["role_truth"][:6] == "expert":
            assert layout.experts == int(stacked), (entry, tensor["name"])
