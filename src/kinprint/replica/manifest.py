"""What a replica says about itself: a manifest for programs and a card for people.

A reconstruction that can be mistaken for the model it imitates does harm; every repository
and every weight file therefore carries its own label.
"""

from __future__ import annotations

from collections.abc import Mapping

from kinprint.replica.figures import changed_share, correlations
from kinprint.replica.layout import Layout, Slot, layouts
from kinprint.replica.vectors import family_moments

GENERATOR = "kinprint.replica 1"
"""Version of the generator: another one makes other bytes, and replicas are built anew."""

MANIFEST = "REPLICA.json"
"""Name of the manifest in each repository."""

LABEL = "NOT the real model: a sparse replica made by kinprint"
"""The shortest form of the notice, carried by every weight file."""

NOTICE = (
    "This is NOT {name}. It is a reconstruction made by kinprint for offline tests: the file "
    "layout imitates the real repository, a few norm vectors are synthetic numbers that agree "
    "with published statistics or are made up, and all other weights are zeros. Nothing "
    "measured on it is a finding about the real model."
)

HOLES = (
    "Every tensor that is not listed under 'written' is a hole in a sparse file: it reads as "
    "zeros and means nothing."
)

CERTAINTY = {
    "sure": "The shard of every norm and router tensor of layers 0 to 45 agrees with a "
    "published table; all other names, shapes and places are remembered.",
    "remembered": "Names, shapes and shards follow from the public configuration and common "
    "splitting, as remembered; they were not checked against the real index.",
}

INTELLECT_SOURCE = (
    "reference/LAYOUTS.md: GLM to INTELLECT-3, Pearson about 1.0, 96 % of norm values changed "
    "in layers 0 to 2 and 0.1 % in deep layers"
)


def manifest(layout: Layout) -> dict[str, object]:
    """The manifest: what is known about each written tensor, and that the rest is nothing."""
    return {
        "generator": GENERATOR,
        "complete": True,
        "model": layout.name,
        "notice": NOTICE.format(name=layout.name),
        "layout": {"certainty": layout.certainty, "meaning": CERTAINTY[layout.certainty]},
        "holes": HOLES,
        "standard_deviations": "divided by n, as in the published tables",
        "written": {
            slot.name: {"file": path} | origin(layout, slot) for path, slot in layout.written()
        },
    }


def origin(layout: Layout, slot: Slot) -> dict[str, object]:
    """How the values of one written tensor came about.

    "reconstructed" names the published figures that the vector agrees with; `fitted_to`
    names averages over several models that an invented choice helps to meet.
    """
    if layout.parent is not None:
        return _inherited(layout, slot)
    if slot.fill is not None or slot.layer is None:
        return {"values": "invented"}
    key = (layout.key, slot.layer)
    known = family_moments(slot.role, layout.dims["hidden"])[key]
    pairs = [pair for pair in correlations() if pair.role == slot.role]
    said = {
        fitted: [
            f"correlation with {_other(pair.a, pair.b, key)}: {pair.source}"
            for pair in pairs
            if pair.fitted == fitted and key in (pair.a, pair.b)
        ]
        for fitted in (False, True)
    }
    told: dict[str, object] = {"values": "invented"}
    if known.status == "reconstructed":
        told = {
            "values": "reconstructed",
            "from": [f"mean and standard deviation: {known.source}", *said[False]],
        }
    elif known.status == "fitted":
        said[True].insert(0, f"mean and standard deviation: {known.source}")
    return told | ({"fitted_to": said[True]} if said[True] else {})


def _other(a: tuple[str, int], b: tuple[str, int], own: tuple[str, int]) -> str:
    model, layer = b if a == own else a
    return f"{model} layer {layer}"


def _inherited(layout: Layout, slot: Slot) -> dict[str, object]:
    parent = next(other for other in layouts() if other.key == layout.parent)
    beneath = origin(parent, slot)
    _, status = changed_share(layout.key, slot.beside)
    if status == "invented" or beneath["values"] == "invented":
        return {"values": "invented", "copied_from": f"the replica of {parent.name}"}
    return {
        "values": "reconstructed",
        "copied_from": f"the replica of {parent.name}",
        "from": [INTELLECT_SOURCE],
    }


def card(layout: Layout, written: Mapping[str, str]) -> str:
    """The README: the first thing anyone sees says what this is not.

    `written` gives for each written tensor whether it is reconstructed or invented.
    """
    kinds = list(written.values())
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
- Written tensors: {len(kinds)}, of which {kinds.count("reconstructed")} agree with published \
statistics and {kinds.count("invented")} are made up.
- Layout: {layout.certainty}. {CERTAINTY[layout.certainty]}
- {HOLES}

`{MANIFEST}` says for every written tensor which published figures it agrees with.
Made by {GENERATOR}.
"""
