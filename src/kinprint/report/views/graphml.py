"""Families of an atlas as GraphML (Brandes et al. 2002), which most programs for graphs read."""

from __future__ import annotations

from collections.abc import Mapping
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kinprint.errors import printable
from kinprint.report.schema import TreeDocument, TreeEdge, TreeLink

_SPACE = "http://graphml.graphdrawing.org/xmlns"
_OF_NODES = {"title": "string", "name": "string", "commit": "string", "architecture": "string",
             "entry": "string", "family": "int"}  # fmt: skip
_OF_EDGES = {"kind": "string", "relation": "string", "likeness": "double", "log10_p": "double",
             "basis": "string", "weight": "double", "declared": "string"}  # fmt: skip
_LONGEST = 1000  # characters of a text


def graphml(document: TreeDocument) -> bytes:
    """The graph: an edge has a direction where something tells it, from the parent to the child."""
    top = Element("graphml", {"xmlns": _SPACE})
    for kind, fields in (("node", _OF_NODES), ("edge", _OF_EDGES)):
        for name, form in fields.items():
            about = {"id": f"{kind}-{name}", "for": kind, "attr.name": name, "attr.type": form}
            SubElement(top, "key", about)
    graph = SubElement(top, "graph", {"id": "atlas", "edgedefault": "undirected"})
    family = {at: number for number, one in enumerate(document.families, 1) for at in one}
    for at, model in enumerate(document.models):
        node = SubElement(graph, "node", {"id": f"m{at}"})
        own = {name: getattr(model, name) for name in _OF_NODES if name != "family"}
        _fill(node, "node", {**own, "family": family.get(at)})
    for one in (*document.edges, *document.links):
        directed = "true" if isinstance(one, TreeEdge) and one.basis is not None else "false"
        ends = {"source": f"m{one.a}", "target": f"m{one.b}", "directed": directed}
        _fill(SubElement(graph, "edge", ends), "edge", _fields(one))
    indent(top, " ")
    found: bytes = tostring(top, "utf-8", xml_declaration=True)
    return found + b"\n"


def _fields(one: TreeLink) -> dict[str, object]:
    kind = "edge" if isinstance(one, TreeEdge) else "link"
    return {"kind": kind} | {name: getattr(one, name, None) for name in _OF_EDGES if name != "kind"}


def _fill(element: Element, kind: str, fields: Mapping[str, object]) -> None:
    for name, value in fields.items():
        if value is not None:
            data = SubElement(element, "data", {"key": f"{kind}-{name}"})
            data.text = printable(str(value), _LONGEST)
