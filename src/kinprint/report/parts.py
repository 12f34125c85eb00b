"""Parts of two models in words: what is known about them, and which layers that is.

Parts with one standing are named together, as "attention of layers 0–5". A component is named
without layers only where all its parts have that standing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.lineage.tests.registry import Basis, own_tests
from kinprint.reader.sizes import in_words
from kinprint.records import DRAFT, LONE_TOWERS, Component, Part, PartFinding, PartState, Reason
from kinprint.report.numbers import share_said
from kinprint.text import Message, Words

_WHOLE = 0.95  # of a part, from which on no share of it is named
_LITTLE = 0.001  # a share that has no number
_TELL_MODEL = (Reason.PART_ONLY_THERE, Reason.PART_PACKED, Reason.TOWER_ONLY_THERE)


class Standing(StrEnum):
    """What a sentence says of parts: their state, and of shared ones how they came to be so."""

    EQUAL = "equal"
    ROUNDED = "rounded"
    TAKEN_OVER = "taken-over"
    MATCHED = "matched"
    LINKED = "linked"
    STARTED_ALIKE = "started-alike"
    NO_TRACE = "no-trace"
    NOT_COMPARABLE = "not-comparable"
    NOT_READ = "not-read"

    @property
    def equal(self) -> bool:
        """Whether it says that numbers are the same, rounding aside."""
        return self in (Standing.EQUAL, Standing.ROUNDED)


class PartGroup(Struct, frozen=True):
    """Parts of which the same can be said.

    Attributes
    ----------
    standing : what that is.
    whole : of equal parts, whether all their numbers were read.
    bits : of rounded parts, the bits of a number in the coarser model.
    reason : why nothing is known.
    parts : the findings.
    """

    standing: Standing
    whole: bool
    bits: int | None
    reason: Message | None
    parts: tuple[PartFinding, ...]

    @property
    def needs(self) -> int | None:
        """Bytes that would decide all of them; None if that is not known."""
        return None if any(one.needs is None for one in self.parts) else needed_bytes(self.parts)


def needed_bytes(findings: Iterable[PartFinding]) -> int | None:
    """Bytes that would decide some parts, as far as they are known; None where none are.

    What all parts of a tower need, the rows for a basis and the vocabulary, is read once for all.
    """
    known = [one for one in findings if one.needs is not None]
    once: dict[tuple[str, str], int] = {}
    for one in known:
        towers = one.part.tower, "" if one.partner is None else one.partner.tower
        once[towers] = max(one.basis, once.get(towers, 0))
    own = sum((one.needs or 0) - one.basis for one in known)
    return own + sum(once.values()) if known else None


def standing_of(finding: PartFinding) -> Standing:
    """What is said of a part."""
    match finding.state, finding.learnt:
        case PartState.SHARED, True:
            return Standing.TAKEN_OVER if _as_numbered(finding) else Standing.MATCHED
        case PartState.SHARED, False:
            return Standing.STARTED_ALIKE
        case PartState.SHARED, None:
            return Standing.LINKED
    return Standing(finding.state)


def groups_of_parts(findings: Sequence[PartFinding]) -> list[PartGroup]:
    """Parts by what is said of them, the closest standing first."""
    found: dict[tuple[Standing, int | None, bool, str], list[PartFinding]] = {}
    for one in findings:
        standing = standing_of(one)
        whole = one.read >= 1 or not standing.equal
        found.setdefault((standing, one.bits, whole, str(one.reason or "")), []).append(one)
    order = tuple(Standing)
    ranked = sorted(found.items(), key=lambda item: (order.index(item[0][0]), item[0][1] or 0))
    return [
        PartGroup(standing, whole, bits, parts[0].reason, tuple(parts))
        for (standing, bits, whole, _), parts in ranked
    ]


def standing_words(groups: Sequence[PartGroup], findings: Sequence[PartFinding]) -> Words:
    """Groups of one standing as a sentence: what is said, and of which parts."""
    first = groups[0]
    key = f"verdict.what.{first.standing}"
    if not first.whole and not _everything(first.parts, findings):
        key += "-sampled"
    fields: dict[str, object] = {}
    if first.standing is Standing.ROUNDED:
        fields["bits"] = first.bits
        key += "" if first.bits else "-somehow"
    named = (_explained(group, parts_in_words(group.parts, findings)) for group in groups)
    return text.words(key, parts=text.joined(named, "; "), **fields)


def _explained(group: PartGroup, named: Words) -> Words:
    """Parts with the reason why nothing is known about them, and what would help."""
    if group.reason is None:
        return named
    fields = {"parts": named, "reason": group.reason}
    if group.needs:
        return text.words("verdict.where.needs", bytes=in_words(group.needs), **fields)
    return text.words("verdict.where.reason", **fields)


def parts_in_words(some: Sequence[PartFinding], findings: Sequence[PartFinding]) -> Words:
    """Parts in a row, components with their layers; `findings` are all that there are."""
    elsewhere = any(_tower_there(one) or _swapped(one) or _moved(one) for one in some)
    if _everything(some, findings) and not elsewhere:
        return text.words("verdict.where.everything")
    return parts_by_name(some, findings)


def parts_by_name(some: Sequence[PartFinding], findings: Sequence[PartFinding]) -> Words:
    """The same, and never "everything": a headline would be taken to speak of the models."""
    return text.joined(_named(some, findings), ", ")


def in_tower(named: Words, tower: str, findings: Sequence[PartFinding]) -> Words:
    """Parts with the name of their tower, where there are several; layers that draft are named, and
    those before them have no need to be."""
    if tower:
        return text.words("verdict.where.tower", part=named, tower=tower)
    if any(one.part.tower not in ("", DRAFT) for one in findings):
        main = text.words("verdict.where.main-tower")
        return text.words("verdict.where.tower", part=named, tower=main)
    return named


def is_lone(finding: PartFinding) -> bool:
    """Whether a part is one of a tower that was compared with none of the other model."""
    return finding.reason is not None and finding.reason.key in LONE_TOWERS


def layers_in_words(layers: Iterable[int]) -> str:
    """Numbers of layers in runs: 0–5, 7."""
    runs: list[tuple[int, int]] = []
    for layer in sorted(set(layers)):
        if runs and layer == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], layer
        else:
            runs.append((layer, layer))
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in runs)


def _everything(some: Sequence[PartFinding], findings: Sequence[PartFinding]) -> bool:
    """Whether these are all parts of which anything was read, whole ones, and they are several."""
    read = [one for one in findings if one.state is not PartState.NOT_READ]
    if any(one.state.linked and one.sure < _WHOLE for one in some):
        return False
    return len(some) > 1 and len(some) == len(read) and all(one in read for one in some)


class _Place(Struct, frozen=True):
    """Where some parts lie: a tower and layers, empty for all there are, and layers over there.

    `tower_there` is the other model's tower where it has another name, `swapped` how many have
    another number there. `of_second` says that they are parts of the second model.
    """

    tower: str
    layers: str = ""
    several: bool = False
    there: str = ""
    tower_there: Words | None = None
    swapped: int = 0
    of_second: bool = False


def _named(some: Sequence[PartFinding], findings: Sequence[PartFinding]) -> Iterator[Words]:
    """Components with their layers; those that lie in the same layers are named together."""
    places: dict[_Place, list[Words]] = {}
    found: dict[tuple[str, Component, Words | None, bool], list[PartFinding]] = {}
    for one in some:
        alike = one.part.tower, _component_of(one), _tower_there(one), _needs_model(one)
        found.setdefault(alike, []).append(one)
    for (tower, component, there, of_second), mine in found.items():
        every = [
            one for one in findings if (one.part.tower, _component_of(one)) == (tower, component)
        ]
        of_others = {
            one.partner
            for one in findings
            if one.partner is not None
            and one.state.linked
            and _component_of(one) is not component
            and (one.partner.tower, one.partner.component) == (tower, component)
        }
        second = all(one.of_second for one in mine)
        model = _parts_of_model(findings, tower, component, second)
        for place, name in _component(tower, component, mine, every, model, bool(of_others)):
            place = replace(place, tower_there=there, of_second=of_second)
            places.setdefault(place, []).append(name)
    for place, names in places.items():
        named = text.joined(names, ", ")
        if place.layers:
            key = "verdict.where.layers" if place.several else "verdict.where.layer"
            named = text.words(key, part=named, layers=place.layers)
        if place.there:
            single = place.there.isdigit()
            key = "verdict.where.moved-one" if single else "verdict.where.moved"
            named = text.words(key, part=named, layers=place.there)
        if place.of_second:
            named = text.words("verdict.where.of-second", part=named)
        if place.swapped:
            named = text.words("verdict.where.swapped", part=named, count=place.swapped)
        named = in_tower(named, place.tower, findings)
        if place.tower_there:
            named = text.words("verdict.where.tower-there", part=named, tower=place.tower_there)
        yield named


def _parts_of_model(
    findings: Sequence[PartFinding], tower: str, component: Component, second: bool
) -> set[Part]:
    """All parts of a component that the first model has, or the second."""
    known = (one for one in findings if second or not one.of_second)
    parts = (one.partner if second and not one.of_second else one.part for one in known)
    return {one for one in parts if one and (one.tower, one.component) == (tower, component)}


def _needs_model(finding: PartFinding) -> bool:
    """Whether a part is one of the second model, and the reason beside it does not say so."""
    told = finding.reason is not None and finding.reason.key in _TELL_MODEL
    return finding.of_second and not told


def _component_of(finding: PartFinding) -> Component:
    """What a part is called: an embedding that answers to a head does so as the head it is."""
    part, partner = finding.part, finding.partner
    if partner is None or part.component is not Component.EMBEDDING:
        return part.component
    return partner.component


def _component(
    tower: str,
    component: Component,
    mine: Sequence[PartFinding],
    every: Sequence[PartFinding],
    model: Collection[Part],
    others: bool,
) -> Iterator[tuple[_Place, Words]]:
    """Parts of one component: without layers if these are all of them.

    `model` has those of the model that they belong to. There are `others` where parts of the second
    model answer to other components of the first, as experts to the feed-forwards that they were
    made of.
    """
    name = text.words(f"verdict.part.{component}")
    share = _linked_share(mine)
    if share < _WHOLE:
        key = "verdict.where.share" if share >= _LITTLE else "verdict.where.little"
        name = text.words(key, part=name, share=share_said(share))
    swapped = sum(_swapped(one) for one in mine)
    moved = any(_moved(one) for one in mine)
    if len(mine) == len(every) and not moved and not others:
        yield _Place(tower, swapped=swapped), name
        return
    inside = [one.part.layer for one in mine if one.part.layer is not None]
    if len(inside) < len(mine):
        layered = any(one.part.layer is not None for one in every)
        yield _Place(tower), text.words("verdict.where.outside", part=name) if layered else name
    if not inside:
        return
    if component is Component.EXPERT:
        some = {one.part for one in mine if one.part.layer is not None}
        most = {one for one in model if one.layer in inside}
        if len(some) < len(most):
            name = text.words("verdict.where.some", part=name, some=len(some), all=len(most))
    there = _layers_there(mine) if moved else ""
    several = len(set(inside)) > 1
    yield _Place(tower, layers_in_words(inside), several, there, swapped=swapped), name


def _layers_there(findings: Sequence[PartFinding]) -> str:
    """Layers of the second model in the order of those of the first: 5–0 where it is reversed."""
    known = [one for one in findings if one.part.layer is not None and one.partner is not None]
    ordered = sorted(known, key=lambda one: (one.part.layer or 0, one.part.expert or 0))
    partners = (one.partner.layer for one in ordered if one.partner is not None)
    runs: list[list[int]] = []
    for layer in dict.fromkeys(layer for layer in partners if layer is not None):
        step = layer - runs[-1][-1] if runs else 0
        if abs(step) == 1 and (len(runs[-1]) == 1 or step == runs[-1][-1] - runs[-1][-2]):
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ", ".join(_run_in_words(run) for run in runs)


def _run_in_words(run: Sequence[int]) -> str:
    """Numbers from the first to the last; two that fall are no run."""
    if len(run) == 1 or (len(run) == 2 and run[1] < run[0]):
        return ", ".join(map(str, run))
    return f"{run[0]}–{run[-1]}"


def _linked_share(findings: Sequence[PartFinding]) -> float:
    """The share of linked parts' numbers that the links are about; one where none is linked."""
    linked = [one for one in findings if one.state.linked]
    weights = sum(one.counted for one in linked)
    return sum(one.counted * one.sure for one in linked) / weights if weights else 1.0


def _moved(finding: PartFinding) -> bool:
    """Whether a linked part lies in another layer of the other model."""
    partner = finding.partner
    return finding.state.linked and partner is not None and partner.layer != finding.part.layer


def _swapped(finding: PartFinding) -> bool:
    """Whether a linked expert has another number among those of the other model."""
    partner, ours = finding.partner, finding.part.expert
    if not finding.state.linked or partner is None or ours is None or partner.expert is None:
        return False
    return partner.expert != ours


def _tower_there(finding: PartFinding) -> Words | None:
    """The tower of the other model that a linked part lies in, where it has another name."""
    partner = finding.partner
    if not finding.state.linked or partner is None or partner.tower == finding.part.tower:
        return None
    return text.plain(partner.tower) if partner.tower else text.words("verdict.where.main-tower")


def _as_numbered(finding: PartFinding) -> bool:
    """Whether any test found it where both models number it alike; without one it was equal.

    Tests that the menu does not have match what they compare.
    """
    known = [own_tests().get(name) for name in finding.tests]
    return not known or any(one is not None and one.basis is not Basis.FOUND for one in known)
