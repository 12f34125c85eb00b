"""The studies by name.

A study is an entry and a procedure. Entries of ours are tables in `derivation/studies.toml`,
`phi/studies.toml` and `critique/studies.toml`: roles, layers, measures, and where the procedure
is; the catalogues have the words (`study.NAME.title`, `.shows`, `.cannot`).

Another package adds a study with an entry point in the group `kinprint.studies`, whose name is
that of the study and which leads to a `Study`:

    STUDY = Study(
        name="my-study",
        code="X1",
        title=Words({"en": "…"}),
        shows=Words({"en": "…"}),
        cannot=Words({"en": "…"}),
        procedure=Procedure(needs, run),
        roles=("norm_in",),
        measures=("cosine",),
    )

`needs(inputs)` names what is to be read, `run(inputs)` gives an `Output` from what was read; both
take a `StudyInput`, and neither reads anything itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kinprint import text
from kinprint.errors import BadOption
from kinprint.extensions import STUDIES, Registry
from kinprint.studies.study import Study
from kinprint.tables import read_table

_ANALYSES = ("derivation", "phi", "critique")


def _own_studies() -> dict[str, Study]:
    """Those that come with kinprint, in the order in which the analyses made them."""
    found: dict[str, Study] = {}
    for analysis in _ANALYSES:
        table = read_table(Path(__file__).parent / analysis / "studies.toml")
        for entry in table["study"]:
            found[entry["name"]] = _study(entry)
    return found


def _study(entry: Mapping[str, Any]) -> Study:
    name = entry["name"]
    words = {part: text.words(f"study.{name}.{part}") for part in ("title", "shows", "cannot")}
    lists = {part: tuple(entry.get(part, ())) for part in ("roles", "layers", "measures")}
    procedure = f"kinprint.studies.{entry['procedure']}"
    return Study(**{**entry, **words, **lists, "procedure": procedure})


_STUDIES = Registry(STUDIES, Study, _own_studies)


def studies() -> Registry[Study]:
    """All studies; its `faults` say which of other packages cannot be used."""
    return _STUDIES


def study_named(name: str) -> Study:
    """The study of that name, or an error that names the nearest."""
    known = studies()
    if name in known:
        return known[name]
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    cause = known.fault_of(name) or (
        text.message("cause.study-near", near=near[0])
        if near
        else text.message("cause.study-unknown")
    )
    raise BadOption(option="name", value=name, cause=cause)
