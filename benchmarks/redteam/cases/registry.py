"""The registry of crafted pairs: a name, how the pair is made, and what is true of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from msgspec import Struct

from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.relabelling import Rng
from benchmarks.redteam.truth import Fact, Truth, Where
from benchmarks.redteam.zoo import Zoo

Pair = tuple[Checkpoint, Checkpoint]
Make = Callable[[Zoo, int, Rng], Pair]
Rules = tuple[tuple[Where, Fact], ...]


class Case(Struct, frozen=True):
    """A pair of models that is made, and the truth about it.

    Attributes
    ----------
    name : what it is called.
    about : the edit, in words.
    make : gives the two models, from the zoo, a seed and its generator.
    truth : what is true of them.
    needs : models of the zoo that it is made of, beside those that come with the package.
    large : whether the models are so large that `standard` reads only a sample of them.
    """

    name: str
    about: str
    make: Make
    truth: Truth
    needs: frozenset[str] = frozenset()
    large: bool = False

    def pair(self, zoo: Zoo, seed: int) -> Pair:
        """The two models; a seed gives the same ones again."""
        return self.make(zoo, seed, np.random.default_rng([seed, *self.name.encode()]))


CASES: dict[str, Case] = {}


def case(
    name: str, truth: Truth, *, needs: str = "", large: bool = False
) -> Callable[[Make], Make]:
    """Register what a function makes; its docstring says what the edit is."""

    def register(make: Make) -> Make:
        assert name not in CASES, name
        about = " ".join((make.__doc__ or "").split())
        CASES[name] = Case(name, about, make, truth, frozenset(needs.split()), large)
        return make

    return register


def true(
    norms: str,
    sample: str,
    whole: str,
    facts: Mapping[Where, Fact] | None = None,
    rest: Fact = Fact.FOREIGN,
    swapped: Mapping[Where, Fact] | None = None,
    layers: float | None = None,
) -> Truth:
    """A truth; relations are given as words with spaces between."""
    return Truth(
        frozenset(norms.split()),
        frozenset(sample.split()),
        frozenset(whole.split()),
        tuple((facts or {}).items()),
        rest,
        None if swapped is None else tuple(swapped.items()),
        layers,
    )


def _where(*components: str) -> Callable[..., Where]:
    def where(*layers: int, tower: str | None = None) -> Where:
        return Where(frozenset(components), frozenset(layers) if layers else None, tower)

    return where


norms = _where("norms")
attention = _where("attention")
feed_forward = _where("feed-forward", "expert")
embedding = _where("embedding", "head")
head = _where("head")
router = _where("router")
other = _where("other")
projector = _where("projector")


_IN_LAYERS = frozenset({"norms", "attention", "feed-forward", "expert", "router", "mixer", "other"})


def layers(*numbers: int) -> Where:
    """All parts of some layers."""
    return Where(_IN_LAYERS, frozenset(numbers))


def tower(name: str) -> Where:
    """Norms and layers of a tower."""
    return Where(_IN_LAYERS, None, name)


def every(parts: Iterable[Where], fact: Fact) -> dict[Where, Fact]:
    """One fact for several parts."""
    return dict.fromkeys(parts, fact)


UNTOLD = "no-evidence untestable"
"""Words that claim nothing; true wherever what is shared was not within reach."""
STRANGERS = true("no-evidence untestable", "no-evidence untestable", "no-evidence")
SAME = "same-weights identical"
