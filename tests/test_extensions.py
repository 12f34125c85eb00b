"""Entry points of other packages: loaded once, when asked for, and never in the way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from importlib.machinery import PathFinder
from importlib.metadata import DistributionFinder, MetadataPathFinder
from pathlib import Path
from threading import Event
from typing import Any
from zipfile import ZipFile

import pytest
from msgspec import Struct

from kinprint import extensions, text
from kinprint.extensions import FORMATS, Registry, usable
from kinprint.model import architectures
from kinprint.model.architectures import Architecture, added_architectures
from kinprint.reader.formats.registry import Format, formats
from kinprint.reader.formats.safetensors import parse_safetensors
from kinprint.reader.weights import choose_weights
from kinprint.records import FileEntry


class Entry(Struct, frozen=True):
    """An entry point, as far as anybody looks at it."""

    name: str
    load: Callable[[], Any]
    value: str = "acme:THING"


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    found: list[Entry] = []
    monkeypatch.setattr(extensions, "entry_points", lambda group: found)
    monkeypatch.setattr(extensions, "_LOADED", {})
    return found


def fails() -> Any:
    raise SystemExit(3)


def test_things_of_the_right_kind_are_used_under_their_own_names(entries: list[Entry]) -> None:
    made = Format("acme", (".acme",), parse_safetensors)
    entries += [Entry("z", lambda: made), Entry("a", lambda: 3), Entry("b", fails)]
    things, faults = usable(FORMATS, Format)
    assert things == {"acme": made}
    assert [str(one) for one in faults] == [
        "'a' of acme names acme:THING, which is no Format",
        "'b' of acme could not be loaded: SystemExit: 3",
    ]
    assert all("acme" in one.say(language) for one in faults for language in text.languages())


class _Finder:
    """Packages that lie in no folder of the path."""

    def __init__(self, places: list[str]) -> None:
        self._places = places

    def find_spec(self, *_: Any) -> None:
        return None

    def find_distributions(self, context: Any) -> Iterable[metadata.Distribution]:
        return MetadataPathFinder.find_distributions(DistributionFinder.Context(path=self._places))


@pytest.mark.parametrize("place", ["folder", "archive", "elsewhere"])
def test_packages_are_found_wherever_python_finds_them(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders are looked through in haste, and all else as Python does."""
    inside = "acme-1.0.dist-info"
    files = {
        "METADATA": "Name: acme\nVersion: 1.0\n",
        "entry_points.txt": "[kinprint.formats]\na = acme:A\n",
    }
    (tmp_path / "site" / inside).mkdir(parents=True)
    with ZipFile(tmp_path / "site.zip", "w") as archive:
        for name, said in files.items():
            (tmp_path / "site" / inside / name).write_text(said)
            archive.writestr(f"{inside}/{name}", said)
    site = str(tmp_path / ("site.zip" if place == "archive" else "site"))
    if place == "elsewhere":
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, _Finder([site])])
    else:
        monkeypatch.syspath_prepend(site)
    assert [one.value for one in extensions._installed.__wrapped__()[FORMATS]] == ["acme:A"]


def test_where_no_package_adds_anything_none_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "nowhere")])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])  # other packages may add a search of theirs
    monkeypatch.setattr(metadata, "entry_points", fails)
    assert extensions._installed.__wrapped__() == dict.fromkeys(extensions.GROUPS, ())


def test_a_name_is_taken_once(entries: list[Entry]) -> None:
    made = Format("acme", (".acme",), parse_safetensors)
    ours = Format("gguf", (".acme",), parse_safetensors)
    entries += [Entry("a", lambda: made), Entry("b", lambda: made), Entry("c", lambda: ours)]
    known = formats()
    assert dict(known.added) == {"acme": made}
    assert [one.key for one in known.faults] == ["note.extension.name-taken"] * 2
    assert known["gguf"] is not ours


def test_a_package_that_never_loads_is_left_behind(
    entries: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "LOADING_SECONDS", 0.01)
    done = Event()
    entries.append(Entry("slow", done.wait))
    try:
        (fault,) = usable(FORMATS, Format)[1]
    finally:
        done.set()
    assert fault.key == "note.extension.slow"


def test_nothing_is_loaded_before_it_is_needed_or_twice(entries: list[Entry]) -> None:
    asked: list[str] = []

    def load() -> Format:
        asked.append("now")
        return Format("acme", (".acme",), parse_safetensors)

    entries.append(Entry("acme", load))
    files = [FileEntry("model.safetensors", 8), FileEntry("model.acme", 8)]
    assert choose_weights("m", files).weights.format == "safetensors"
    assert formats()["gguf"] and not asked
    for _ in range(2):
        assert choose_weights("m", files[1:]).weights.format == "acme"
        assert choose_weights("m", files, "model.acme").weights.shards == ("model.acme",)
    assert asked == ["now"]


def test_a_registry_is_a_mapping_of_ours_and_theirs(entries: list[Entry]) -> None:
    entries += [Entry("b", lambda: 2), Entry("c", fails)]
    registry: Registry[int] = Registry("any.group", int, lambda: {"a": 1})
    assert dict(registry) == {"a": 1, "b": 2}
    assert (len(registry), dict(registry.own), dict(registry.added)) == (2, {"a": 1}, {"b": 2})
    assert registry.fault_of("c") is not None and registry.fault_of("b") is None
    with pytest.raises(KeyError):
        registry["c"]


GOOD = """
[names.acme]
models = ["acme"]
words = { "mix" = "qkv" }
[layout]
experts_in_out = ["acme"]
defaults = { acme = { multi_query = true } }
[[layout.split]]
role = "qkv"
families = ["acme"]
parts = ["q", "k", "v"]
repeat = 1
[symmetries]
half = ["acme"]
"""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (GOOD.replace('half = ["acme"]', 'half = ["acme", "llama"]'), "llama"),
        (GOOD.replace('families = ["acme"]', 'families = ["gpt2"]'), "gpt2"),
        (GOOD.replace('families = ["acme"]\n', ""), "for which families"),
        (GOOD.replace("defaults = { acme", "defaults = { falcon"), "falcon"),
        (GOOD.replace("words =", 'marks = ["mix"]\nwords ='), "marks"),
        (GOOD.replace("[symmetries]", "[symmetry]"), "symmetry"),
        (GOOD.replace('experts_in_out = ["acme"]', 'in_out_names = "."'), "in_out_names"),
        (GOOD.replace('"qkv" }', '"qqq:detail" }'), "qqq"),
        ("not TOML", "line 1"),
    ],
)
def test_an_architecture_speaks_of_its_own_models_alone(changed: str, said: str) -> None:
    assert Architecture.from_toml("acme", GOOD).models == {"acme"}
    with pytest.raises(ValueError, match=said):
        Architecture.from_toml("acme", changed)


@pytest.mark.parametrize("model", ["llama", "gpt2", "qwen", "falcon"])
def test_models_that_are_known_stay_as_they_are(
    entries: list[Entry], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries.append(Entry("acme", lambda: Architecture.from_toml("acme", text_of(model))))
    added_architectures.cache_clear()
    try:
        assert added_architectures()[0] == {}
        assert model in str(added_architectures()[1][0])
        assert architectures.with_added({"a": 1}, "names") == {"a": 1}
    finally:
        added_architectures.cache_clear()


def text_of(model: str) -> str:
    return f'[names.acme]\nmodels = ["{model}"]\nwords = {{ "q_proj" = "v" }}\n'
