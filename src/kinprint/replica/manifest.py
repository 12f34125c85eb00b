"""What a replica says about itself: a manifest for programs and a card for people.

A reconstruction that can be mistaken for the model it imitates does harm; every repository
and every weight file therefore carries its own label.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from kinprint.replica.figures import correlations
from kinprint.replica.layout import Layout, Slot
from kinprint.replica.vectors import family_moments, parent_of, written

GENERATOR = "kinprint.replica 3"
"""Version of the generator: another one makes other bytes, and replicas are built anew."""

MANIFEST = "REPLICA.json"
"""Name of the manifest in each repository."""

LABEL = "NOT the real model: a sparse replica made by kinprint"
"""The shortest form of the notice, carried by every weight file."""

NOTICE = (
    "This is NOT {name}. It is a reconstruction made by kinprint for offline tests: the file "
    "layout imitates the real repository, a few norm vectors are synthetic numbers that agree "
    "with published statistics, and nothing else is in it. Nothing measured on it is a finding "
    "about the real model."
)

HOLES = (
    "Every tensor that is not listed under 'written' is not in the replica: it is a hole in a "
    "sparse file, reads as zeros and means nothing."
)

PRECISION = (
    "Written norms have 32 bits a value, where the real model has 16, so that rounding moves no "
    "published figure."
)

CERTAINTY = {
    "sure": "The shard of every norm and router tensor of layers 0 to 45 agrees with a "
    "published table; all other names, shapes and places are remembered.",
    "remembered": "Names, shapes and shards follow from the public configuration and common "
    "splitting, as remembered; they were not checked against the real index.",
}

SHARES = (
    "revision README.md: GLM-4.5-Air to INTELLECT-3, Pearson about 1.0, share of changed norm "
    "values by layer"
)

OFF_DIAGONAL = (
    "derivation origin/out_decay/results.json: mean cosine of different layers of Solar and GLM"
)


def manifest(layout: Layout) -> dict[str, object]:
    """The manifest: what each written tensor agrees with, and that the rest is not there."""
    return {
        "generator": GENERATOR,
        "complete": True,
        "model": layout.name,
        "notice": NOTICE.format(name=layout.name),
        "layout": {"certainty": layout.certainty, "meaning": CERTAINTY[layout.certainty]},
        "holes": HOLES,
        "values": "Single values are made up; moments and correlations are as listed.",
        "precision": PRECISION,
        "standard_deviations": "divided by n, as in the published tables",
        "written": {
            slot.name: {
                "file": path,
                "values": _status(layout, slot),
                "from": _sources(layout, slot),
            }
            for path, slot in written(layout)
        },
    }


def label(layout: Layout, slots: Iterable[Slot]) -> dict[str, str]:
    """What a weight file says of itself: that it is a replica, and what is in it.

    Readers take the marks of numbers from here: which tensors are there, and with which others
    their correlation ("pearson") or only their cosine ("cosine") agrees with a published figure.
    """
    told = {
        slot.name: {
            "id": _name(layout.key, slot),
            "values": _status(layout, slot),
            "nbytes": slot.nbytes,
            **_partners(layout, slot),
        }
        for slot in slots
    }
    return {"replica": LABEL, "replica.written": json.dumps(told, separators=(",", ":"))}


def _name(model: str, slot: Slot, layer: int | str | None = None) -> str:
    return f"{model}/{slot.role}/{slot.layer if layer is None else layer}"


def _status(layout: Layout, slot: Slot) -> str:
    assert slot.layer is not None
    origin = parent_of(layout) or layout
    return family_moments(slot.role, layout.dims["hidden"])[origin.key, slot.layer].status


def _partners(layout: Layout, slot: Slot) -> dict[str, list[str]]:
    """Tensors with which a correlation or a cosine was published; `*` is any layer."""
    parent = parent_of(layout)
    if parent is not None:
        return {"pearson": [_name(parent.key, slot)], "cosine": []}
    own = (layout.key, slot.layer)
    found: dict[str, list[str]] = {"pearson": [], "cosine": []}
    for pair in correlations():
        if pair.role == slot.role and own in (pair.a, pair.b):
            model, layer = pair.b if pair.a == own else pair.a
            found["cosine" if pair.fitted else "pearson"].append(_name(model, slot, layer))
    if layout.key in ("solar", "glm"):
        found["cosine"].append(_name("glm" if layout.key == "solar" else "solar", slot, "*"))
    return found


def _sources(layout: Layout, slot: Slot) -> list[str]:
    """The published figures that one written tensor agrees with."""
    parent = parent_of(layout)
    if parent is not None:
        return [f"the replica of {parent.name}", SHARES]
    assert slot.layer is not None
    own = (layout.key, slot.layer)
    known = family_moments(slot.role, layout.dims["hidden"])[own]
    pairs = [
        f"correlation with {' layer '.join(map(str, pair.b if pair.a == own else pair.a))}: "
        f"{pair.source}"
        for pair in correlations()
        if pair.role == slot.role and own in (pair.a, pair.b)
    ]
    off = [OFF_DIAGONAL] if layout.key in ("solar", "glm") else []
    return [f"mean and standard deviation: {known.source}", *pairs, *off]


def card(layout: Layout) -> str:
    """The README: the first thing anyone sees says what this is not."""
    kinds = Counter(_status(layout, slot) for _, slot in written(layout))
    shards = sum(len(copy.files) for copy in layout.copies)
    return f"""---
tags:
- replica
- not-the-real-model
---

# ⚠️ NOT the real model ⚠️

**{NOTICE.format(name=layout.name)}**

**이 저장소는 {layout.name} 모델이 아닙니다. 배치만 흉내 낸 재구성본이며, 여기서 잰 어떤 값도 \
실제 모델에 대한 결과가 아닙니다.**

- Weight files: {shards}, at their full length, almost all of it holes.
- Written tensors: {kinds.total()}, of which {kinds["reconstructed"]} are reconstructed from \
published statistics and {kinds["fitted"]} fitted to published cosines. Single values are made up.
- Layout: {layout.certainty}. {CERTAINTY[layout.certainty]}
- {HOLES}
- {PRECISION}

`{MANIFEST}` says for every written tensor which published figures it agrees with.
Made by {GENERATOR}.
"""
