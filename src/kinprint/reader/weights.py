"""Which files of a repository are its weights. Pure: file names in, a choice out.

A repository may hold the same model twice (shards and a consolidated copy, safetensors
and PyTorch archives, a dozen GGUF quantisations). The choice is the same every time and
what was passed over is named, so that a reader can ask for it by path.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from kinprint import text
from kinprint.errors import FileMissing, NoWeights
from kinprint.reader.formats.registry import Format, formats
from kinprint.records import FileEntry

_SHARD = re.compile(r"^(?P<stem>.+?)-(?P<number>\d{3,6})-of-(?P<count>\d{3,6})$")
_INDEX = re.compile(r"^(?P<stem>.+)\.(?P<kind>[^.]+)\.index(\.(?P<variant>[^.]+))?\.json$")
_NOT_WEIGHTS = re.compile(
    r"^(training_args|optimizer|scheduler|rng_state(_\d+)?|scaler|random_states_\d+|trainer_state"
    r"|tokenizer|vocab|merges|spiece|sentencepiece.*|.*imatrix.*|mmproj.*)\.",
    re.IGNORECASE,
)
_SLICE = re.compile(r"^consolidated\.\d+$")
PIPELINE = "model_index.json"
"""The file at the root of a pipeline of several models, each in a folder of its own."""
_MAIN_COMPONENTS = ("transformer", "unet", "prior")
_STEM_ORDER = ("model", "pytorch_model", "diffusion_pytorch_model", "adapter_model")


class WeightSet(Struct, frozen=True):
    """Files that together are one set of weights: an index, if there is one, and shards."""

    kind: Format
    folder: str
    stem: str
    shards: tuple[str, ...]
    index: str | None = None
    size: int = 0

    @property
    def format(self) -> str:
        """Name of the files' format."""
        return self.kind.name

    @property
    def label(self) -> str:
        """A path that names the set, for messages and for asking for it."""
        return self.index or self.shards[0]


class Choice(Struct, frozen=True):
    """The weights that are read, and the other sets that were there.

    `components` are folders of a pipeline that hold models of their own beside the chosen one.
    `counted` is whether the names of the chosen files say that they are the model: numbers 1 to N
    of N, and no other file of their format that their index could name, beside them or in a folder
    below.
    """

    weights: WeightSet
    others: tuple[WeightSet, ...]
    components: tuple[str, ...] = ()
    counted: bool = False


def choose_weights(name: str, files: Iterable[FileEntry], focus: str = "") -> Choice:
    """The set of weights to read; `focus` narrows it to a file or a folder.

    Formats of other packages are tried where ours find nothing.
    """
    entries = {entry.path: entry for entry in files}
    known = formats()
    choice = _choose(name, entries, focus, tuple(known.own.values()))
    if choice is None and known.added:
        choice = _choose(name, entries, focus, tuple(known.added.values()))
    if choice is None:
        raise NoWeights(name=name, cause=_why_none(entries, focus, known.faults))
    return choice


def _choose(
    name: str, entries: Mapping[str, FileEntry], focus: str, kinds: Sequence[Format]
) -> Choice | None:
    """The choice among the files of some formats; None where there are none."""
    sets = _weight_sets(entries, kinds)
    if focus in entries:
        found = _focused(entries[focus], sets, kinds)
        return Choice(found, ()) if found is not None else None
    if focus:
        inside = focus.rstrip("/")
        sets = [item for item in sets if item.folder == inside or _below(item.folder, inside)]
        if not sets and not any(_below(path, inside) for path in entries):
            raise FileMissing(name=name, path=focus)
    if not sets:
        return None
    ranked = sorted(sets, key=lambda item: _rank(item, kinds))
    slices = [item for item in sets if item.folder == ranked[0].folder and _SLICE.match(item.stem)]
    if _SLICE.match(ranked[0].stem) and len(slices) > 1:
        first = slices[0].shards[0]
        cause = text.message("cause.weights.cut", devices=len(slices), first=first)
        raise NoWeights(name=name, cause=cause)
    folders = sorted({item.folder for item in sets})
    if not focus and PIPELINE in entries and "" not in folders:
        return _main_component(ranked, entries, folders)
    if ranked[0].folder != focus.rstrip("/") and len(folders) > 1 and not ranked[0].kind.variants:
        shown = ", ".join(folders[:4]) + (", …" if len(folders) > 4 else "")
        cause = text.message("cause.weights.several-folders", folders=shown)
        raise NoWeights(name=name, cause=cause)
    return _beside(ranked[0], ranked, entries)


def _beside(
    chosen: WeightSet, sets: Sequence[WeightSet], paths: Iterable[str], *components: str
) -> Choice:
    """The choice of one of several sets, among all files that there are."""
    others = tuple(item for item in sets if item is not chosen)
    reach = posixpath.join(chosen.folder, "")  # an index names nothing outside its folder
    nameable = {
        path
        for path in paths
        if path.startswith(reach) and path.lower().endswith(chosen.kind.suffixes)
    }
    counted = are_numbered(chosen.shards) and nameable <= set(chosen.shards)
    return Choice(chosen, others, components, counted)


def are_numbered(shards: Sequence[str]) -> bool:
    """Whether files have the numbers 1 to N of N."""
    found = [_SHARD.match(posixpath.splitext(path)[0]) for path in shards]
    numbers = [(int(one["number"]), int(one["count"])) for one in found if one is not None]
    return bool(shards) and sorted(numbers) == [(at + 1, len(shards)) for at in range(len(shards))]


def _main_component(
    ranked: Sequence[WeightSet], paths: Iterable[str], folders: Sequence[str]
) -> Choice:
    """The model of a pipeline that makes pictures, and the folders of the others."""
    main = next((name for name in _MAIN_COMPONENTS if name in folders), ranked[0].folder)
    weights = next(item for item in ranked if item.folder == main)
    return _beside(weights, ranked, paths, *(name for name in folders if name != main))


def _focused(
    entry: FileEntry, sets: Sequence[WeightSet], kinds: Sequence[Format]
) -> WeightSet | None:
    """What pointing at a file means: all of its set for an index or a split, else it alone."""
    for item in sets:
        if entry.path == item.index or (item.kind.whole and entry.path in item.shards):
            return item
    return _single(entry, kinds)


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


def _weight_sets(entries: Mapping[str, FileEntry], kinds: Sequence[Format]) -> list[WeightSet]:
    """Group weight files into sets: by index, by shard numbering, or alone."""
    known = {one.name: one for one in kinds}
    indexed = {one.index: one.name for one in kinds if one.index}
    groups: dict[tuple[str, str, str, int], list[str]] = {}
    indexes: dict[tuple[str, str, str], str] = {}
    for path in sorted(entries):
        folder, base = posixpath.split(path)
        index = _INDEX.match(base)
        if index is not None and index["kind"] in indexed:
            variant = index["variant"]
            stem = f"{index['stem']}.{variant}" if variant else index["stem"]
            indexes[(folder, indexed[index["kind"]], stem)] = path
            continue
        single = _single(entries[path], kinds)
        if single is None:
            continue
        root = posixpath.splitext(base)[0]
        shard = _SHARD.match(root)
        stem = shard["stem"] if shard else root
        count = int(shard["count"]) if shard else 1
        groups.setdefault((folder, single.format, stem, count), []).append(path)
    most: dict[tuple[str, str, str], int] = {}
    for folder, kind, stem, count in groups:
        most[folder, kind, stem] = max(count, most.get((folder, kind, stem), 0))
    sets = []
    for (folder, kind, stem, count), paths in groups.items():
        biggest = count == most[folder, kind, stem]
        found = indexes.get((folder, kind, stem)) if biggest else None
        size = sum(entries[path].size for path in paths)
        sets.append(WeightSet(known[kind], folder, stem, tuple(paths), found, size))
    claimed = {item.index for item in sets}
    # An index whose shards are missing or named unusually is still the way in.
    sets += [
        WeightSet(known[kind], folder, stem, (), path)
        for (folder, kind, stem), path in indexes.items()
        if path not in claimed
    ]
    return sets


def _single(entry: FileEntry, kinds: Sequence[Format]) -> WeightSet | None:
    folder, base = posixpath.split(entry.path)
    root, suffix = posixpath.splitext(base)
    kind = next((one for one in kinds if suffix.lower() in one.suffixes), None)
    if kind is None or _NOT_WEIGHTS.match(base):
        return None
    return WeightSet(kind, folder, root, (entry.path,), None, entry.size)


def _rank(item: WeightSet, kinds: Sequence[Format]) -> tuple[int, int, int, bool, int, str]:
    """Shallow folders first, then preferred formats, known names, of one of these names the single
    file, as those who load models do, and the larger (more precise) set."""
    depth = item.folder.count("/") + 1 if item.folder else 0
    known = item.stem in _STEM_ORDER
    stem = _STEM_ORDER.index(item.stem) if known else len(_STEM_ORDER)
    parted = known and (item.index is not None or len(item.shards) > 1)
    return depth, kinds.index(item.kind), stem, parted, -item.size, item.label


def _why_none(
    entries: Mapping[str, FileEntry], focus: str, faults: Sequence[text.Message]
) -> text.Message:
    """Why there are no weights; formats of other packages that failed may be the reason."""
    names = list(entries)
    if focus in entries:
        cause = text.message("cause.weights.other-file", path=focus)
    elif not names:
        cause = text.message("cause.weights.no-files")
    else:
        shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
        cause = text.message("cause.weights.only-files", files=shown)
    for fault in faults:
        cause = text.message("cause.weights.and-fault", cause=cause, fault=fault)
    return cause
