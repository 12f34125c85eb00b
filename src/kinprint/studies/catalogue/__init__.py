"""The studies by name: what each compares, what it can show and what it cannot.

Studies are data: the files beside this one name the roles, layers and measures of each, and
the procedure that carries it out; the catalogues have its words (`study.NAME.title`, `.shows`
and `.cannot`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any

from kinprint import text
from kinprint.errors import BadOption
from kinprint.studies.results import Result
from kinprint.studies.scene import Document, Item, Scene
from kinprint.text import Words


@dataclass(frozen=True, slots=True)
class Procedure:
    """How a study is done: first what it needs, then, with all of it there, the result.

    `needs` plans and reads nothing; `run` computes and reads nothing. Between the two, the
    numbers of all studies of all models are taken in one sweep. `documents`, where there is
    one, names small files of the repositories that are to be read as well.
    """

    needs: Callable[[Study, Scene], list[Item]]
    run: Callable[[Study, Scene], Result]
    documents: Callable[[Study, Scene], list[Document]] | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """One named experiment.

    `code` is its place in the original analyses. `least` and `most` bound the number of
    models (`most` None: any number). `vocabulary` and `history` say that
    tokenizers, or lists of commits, must be read.
    """

    name: str
    code: str
    title: Words
    shows: Words
    cannot: Words
    least: int
    most: int | None
    roles: tuple[str, ...]
    layers: tuple[int, ...]
    measures: tuple[str, ...]
    vocabulary: bool
    history: bool
    procedure: str

    def load(self) -> Procedure:
        """The code behind the entry, imported when it is needed."""
        module, _, name = self.procedure.partition(":")
        found = getattr(import_module(f"kinprint.studies.{module}"), name)
        assert isinstance(found, Procedure)
        return found


@cache
def studies() -> Mapping[str, Study]:
    """All studies, in the order in which the analyses made them."""
    found: dict[str, Study] = {}
    for file in ("derivation.toml", "phi.toml", "critique.toml"):
        table = (files("kinprint.studies.catalogue") / file).read_text("utf-8")
        for entry in tomllib.loads(table)["study"]:
            study = _study(entry)
            found[study.name] = study
    return found


def study_named(name: str) -> Study:
    """The study of that name, or an error that names the nearest."""
    import difflib

    known = studies()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"the nearest is '{near[0]}'" if near else "see `kinprint study list`"
    raise BadOption(option="NAME", value=name, cause=f"there is no such study; {hint}")


def _study(entry: Mapping[str, Any]) -> Study:
    name = entry["name"]
    return Study(
        name=name,
        code=entry["code"],
        title=text.words(f"study.{name}.title"),
        shows=text.words(f"study.{name}.shows"),
        cannot=text.words(f"study.{name}.cannot"),
        least=entry.get("least", 2),
        most=entry.get("most"),
        roles=tuple(entry.get("roles", ())),
        layers=tuple(entry.get("layers", ())),
        measures=tuple(entry.get("measures", ())),
        vocabulary=entry.get("vocabulary", False),
        history=entry.get("history", False),
        procedure=entry["procedure"],
    )
