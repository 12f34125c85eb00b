"""What models and roles are called where people read.

A model has the shortest name that tells it from the others. A folder is called by the last part
of its path, with as much of what comes before it as tells it from the others; a repository of the
Hub by its own name where there is little room, and in sentences with its owner. Two states of one
repository are told apart by their commits. Only one and the same model, given twice, has the same
name twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kinprint import text
from kinprint.records import ModelRef
from kinprint.text import Words

_COMMIT = 12  # letters of a commit that are shown
_NOWHERE = ("", ".", "..")  # parts of a path that name no folder


def short_titles(refs: Sequence[ModelRef]) -> list[str]:
    """Names for places with little room: `m` for org/m, or org/m if there is another m."""
    return _distinct(refs, [_names(ref) for ref in refs])


def full_titles(refs: Sequence[ModelRef]) -> list[str]:
    """Names for sentences: what is not a folder keeps all of its name."""
    names = [_names(ref) for ref in refs]
    return _distinct(
        refs,
        [
            mine if ref.kind == "local" else mine[mine.index(ref.name) :]
            for ref, mine in zip(refs, names, strict=True)
        ],
    )


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
    if ref.kind == "local":
        return _tails(ref.given) or _tails(ref.name) or [ref.given]
    short = (ref.name if ref.kind == "hub" else ref.given).rstrip("/").rpartition("/")[2]
    names = [short or ref.given, ref.name]
    if ref.path:
        names.append(f"{ref.name}/{ref.path}")
    if ref.commit:
        names.append(f"{names[-1]}@{ref.commit[:_COMMIT]}")
    return list(dict.fromkeys(names))


def _tails(path: str) -> list[str]:
    """The ends of a path, one part more each time; none where the last part names no folder."""
    parts = path.rstrip("/").split("/")
    if parts[-1] in _NOWHERE:
        return []
    return ["/".join(parts[at:]) for at in range(len(parts) - 1, -1, -1)]


def _distinct(refs: Sequence[ModelRef], names: Sequence[Sequence[str]]) -> list[str]:
    """For each model the first of its names, or a longer one where another would have the same."""
    states = [(ref.kind, ref.name, ref.commit, ref.path) for ref in refs]
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
