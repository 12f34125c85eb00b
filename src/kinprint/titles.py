"""What models and roles are called where people read.

A model has the shortest name that tells it from the others. A folder is called by the last part
of its path that says something ("model" does not, nor does a digest), with as much of what comes
before it as tells it from the others; a repository of the Hub by its own name where there is little
room, and in sentences with its owner and the revision that was asked for. A folder of the Hub's
cache is called as the repository that it holds. Two states of one repository are told apart by
their commits. Only one and the same model, given twice, has the same name twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from kinprint import text
from kinprint.records import ModelRef
from kinprint.text import Words

_COMMIT = 12  # letters of a commit that are shown
_NOWHERE = ("", ".", "..")  # parts of a path that name no folder
_CACHED = re.compile(r"(?:^|/)models--([^/]+)/snapshots/([0-9a-f]{7,})(?:/|$)")
_PRIVATE = ("/", "~", "..", "file:", "\\")  # how paths begin that say where somebody keeps things
_SAYS_NOTHING = re.compile(
    r"(?:(?:\w+_)?models?|weights|checkpoints?|snapshots?|blobs|consolidated|final|latest|last|best|"
    r"outputs?|main|merged|export|hf|resolve|blob|(?:sha256-)?[0-9a-f]{12,}|\d+)"
    r"(?:[-_.](?:\d+|of|index|safetensors|bin|gguf|pth?|ckpt|json))*",
    re.IGNORECASE,
)
"""Parts of a path that many models have."""


def short_titles(refs: Sequence[ModelRef]) -> list[str]:
    """Names for places with little room: `m` for org/m, or org/m if there is another m."""
    return _distinct(refs, [_names(ref) for ref in refs])


def full_titles(refs: Sequence[ModelRef]) -> list[str]:
    """Names for sentences: what is not a folder keeps all of its name."""
    return _distinct(refs, [_names(ref)[_first_in_sentences(ref) :] for ref in refs])


def public_name(given: str, title: str = "") -> str:
    """A model as it was typed, less what a path tells about the machine it lies on.

    What is left of such a path begins with a dot, so that it names a folder and no repository;
    a folder of the Hub's cache is the commit that it holds.
    """
    if not given.startswith(_PRIVATE) and given[1:3] != ":\\":
        return given
    cached = _repository(ModelRef(given, "local", given))
    if cached is not None:
        return cached.given
    return "./" + (title or (_tails(given) or [given])[0]).lstrip("/")


def role_title(role: str) -> Words:
    """A role's name for people; its own where there is no better one."""
    key = f"role.{role}"
    return text.words(key) if text.knows(key) else text.plain(role)


def tensor_title(role: str, layer: int | None, expert: int | None, tower: str) -> Words:
    """A tensor by what it is and where it lies, for sentences."""
    named = role_title(role)
    for key, where in (("expert", expert), ("layer", layer), ("tower", tower or None)):
        if where is not None:
            named = text.words(f"role.of.{key}", name=named, where=where)
    return named


def _names(ref: ModelRef) -> list[str]:
    """All that a model may be called, the shortest first."""
    cached = _repository(ref)
    if cached is not None:
        return _names(cached)
    if ref.kind == "local":
        return _tails(ref.given) or _tails(ref.name) or [ref.given]
    short = [ref.name.rpartition("/")[2]] if ref.kind == "hub" else _tails(ref.given)[:1]
    names = [*short, _asked_for(ref)]
    if ref.path:
        names.append(f"{ref.name}/{ref.path}")
    if ref.commit:
        names.append(f"{names[-1].partition('@')[0]}@{ref.commit[:_COMMIT]}")
    return list(dict.fromkeys(names))


def _first_in_sentences(ref: ModelRef) -> int:
    """Where names with an owner begin; folders have none."""
    model = _repository(ref) or ref
    return 0 if model.kind == "local" else _names(model).index(_asked_for(model))


def _asked_for(ref: ModelRef) -> str:
    """A repository with the revision that was typed, if any was."""
    _, named, rest = ref.given.partition(f"{ref.name}@")
    revision = rest.partition("/")[0] if named and ref.kind == "hub" else ""
    is_commit = ref.commit and revision == ref.commit
    return f"{ref.name}@{revision[:_COMMIT] if is_commit else revision}" if revision else ref.name


def _repository(ref: ModelRef) -> ModelRef | None:
    """What a folder of the Hub's cache holds; None for others."""
    found = _CACHED.search(ref.name) if ref.kind == "local" else None
    if found is None:
        return None
    name, commit = found[1].replace("--", "/"), found[2]
    return ModelRef(f"{name}@{commit}", "hub", name, commit, ref.path)


def _tails(path: str) -> list[str]:
    """The ends of a path, one part more each time; none where the last part names no folder.

    The shortest begins with a part that says something, where there is one.
    """
    parts = path.replace("\\", "/").rstrip("/").split("/")
    if parts[-1] in _NOWHERE:
        return []
    last = len(parts) - 1
    telling = (
        at
        for at in range(last, -1, -1)
        if parts[at] not in _NOWHERE and not _SAYS_NOTHING.fullmatch(parts[at])
    )
    return ["/".join(parts[at:]) for at in range(next(telling, last), -1, -1)]


def _distinct(refs: Sequence[ModelRef], names: Sequence[Sequence[str]]) -> list[str]:
    """For each model the first of its names, or a longer one where another would have the same."""
    # Folders of one name, as it was typed in different places, are told apart by where they lie.
    places = [PurePath(ref.given) if ref.kind == "local" else None for ref in refs]
    states = [
        (ref.kind, ref.name, ref.commit, ref.path, place)
        for ref, place in zip(refs, places, strict=True)
    ]
    at = dict.fromkeys(states, 0)
    choices = dict(zip(states, names, strict=True))
    while True:
        chosen = {state: choices[state][at[state]] for state in at}
        taken = Counter(chosen.values())
        longer = [
            state for state in at
            if taken[chosen[state]] > 1 and at[state] + 1 < len(choices[state])
        ]  # fmt: skip
        if not longer:
            return [chosen[state] for state in states]
        for state in longer:
            at[state] += 1
