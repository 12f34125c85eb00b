"""Tables of tokens compared number by number: rows of equal tokens, others, padding, and biases."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.parts.agreement import Agreement, Agreements, both_sizes, compare_rows
from kinprint.lineage.parts.tensors import Rows, is_no_bias, tensor_sizes, tensors_of
from kinprint.lineage.reading.sample import Embedding, Floats, Indices, Sample
from kinprint.model.places import Address
from kinprint.records import Component, Part, Role

_ROWS = "rows"  # of a table of tokens, whatever it is called


def compare_tables(a: Sample, b: Sample, part: Part, partner: Part, least: float) -> Agreements:
    """Rows of equal tokens, those that no token names by their numbers, and biases.

    Biases must agree for all to be equal, and link nobody: strangers may have the frequencies of
    one text. A bias of zeros is none.
    """
    ours, theirs = _Table.of(a, part), _Table.of(b, partner)
    at, to = ours.partners(theirs)
    found: dict[str, Agreement] = {}
    agreement = compare_rows((at, _picked(ours.rows, at)), (at, _picked(theirs.rows, to)), least)
    sizes = dict(ours.biases), dict(theirs.biases)
    covered = True
    if agreement is not None:
        whole = ours.whole and theirs.whole
        part_of_both = not whole and ours.size and theirs.size
        read = min(ours.size, theirs.size) if part_of_both else agreement.numbers
        if ours.rounded != theirs.rounded:
            agreement = agreement.as_read()
        found[_ROWS] = replace(agreement, numbers=read)
        padded = [whole and one.is_padded(done) for one, done in ((ours, at), (theirs, to))]
        covered = all(padded) or not whole
        for one, table, spare in zip(sizes, (ours, theirs), padded, strict=True):
            one[_ROWS] = read if spare else max(table.size, read)
    elif ours.rows.size or theirs.rows.size:
        return Agreements({}, (), False)
    for name in ours.read.keys() & theirs.read.keys():
        told = compare_rows(ours.read[name], theirs.read[name], least)
        if told is not None:
            numbers = min(one.get(name, 0) for one in sizes)
            found[name] = replace(told, information=0.0, rows=float(told.same), numbers=numbers)
    complete = bool(found) and covered and sizes[0] == sizes[1]
    return Agreements(found, tuple(both_sizes(*sizes).values()), complete)


class _Table(Struct, frozen=True):
    """A table of tokens as it was read.

    Attributes
    ----------
    numbers, rows : the rows that were read, and their numbers.
    named : the tokens that name some of them.
    size : how many numbers the table has; 0 where nobody knows.
    read, biases : what was read of its biases, and how many numbers they have.
    rounded : digests of what is stored where single precision has not all of it.
    """

    numbers: Indices
    rows: Floats
    named: Embedding | None
    size: int
    read: Mapping[str, Rows]
    biases: Mapping[str, int]
    rounded: tuple[str, ...] = ()

    @classmethod
    def of(cls, sample: Sample, part: Part) -> _Table:
        """The embedding of a model, or its head."""
        embedding = part.component is Component.EMBEDDING
        role, table = (Role.EMBED, sample.embedding) if embedding else (Role.LM_HEAD, sample.head)
        few = sample.few.get((Address(role), False))
        known = [one for one in (few, None if table is None else (table.ids, table.rows)) if one]
        numbers, rows = np.empty(0, np.int64), np.empty((0, 0), np.float32)
        if known:
            numbers, first = np.unique(np.concatenate([one[0] for one in known]), return_index=True)
            whole = known[0][1]  # most often the other rows are among those
            more = len(numbers) > len(whole)
            rows = _picked(np.concatenate([one[1] for one in known]) if more else whole, first)
        read = {key: one for (key, _), one in tensors_of(sample, part).items() if key != role}
        sizes = tensor_sizes(sample, part)
        biases = {
            key.removeprefix(role): size
            for key, size in sizes.items()
            if key != role and not is_no_bias(sample, part, key)
        }
        told = {key.removeprefix(role): one for key, one in read.items()}
        rounded = tuple(digest for (one, _), digest in sample.rounded.items() if one == part)
        return cls(numbers, rows, table, sizes.get(role, 0), told, biases, rounded)

    @property
    def names(self) -> Indices:
        """What the tokens of rows are called; 0 where no token names a row."""
        found = np.zeros(len(self.numbers), np.int64)
        if self.named is not None:
            found[np.searchsorted(self.numbers, self.named.ids)] = self.named.names
        return found

    @property
    def whole(self) -> bool:
        """Whether all rows were read."""
        return self.rows.size == self.size

    def partners(self, other: _Table) -> tuple[Indices, Indices]:
        """Places of rows that answer to each other: by number where names agree, else by name.

        Where no token is in both, by number alone. One model may name a row that another does not.
        A row of zeros is none: it answers only to what its table is too coarse for.
        """
        at, to = self._named_alike(other)
        lost = self._lost(at, other, to) | other._lost(to, self, at)
        return at[~lost], to[~lost]

    def _lost(self, at: Indices, other: _Table, to: Indices) -> NDArray[np.bool_]:
        """Which rows are zeros, and those that answer to them too large to become so here."""
        lost = ~np.asarray(self.rows.any(axis=1))[at]
        if lost.any():
            least = np.abs(self.rows[self.rows != 0]).min(initial=np.inf)
            lost[lost] = np.abs(other.rows[to[lost]]).max(axis=1, initial=0.0) > least
        return lost

    def _named_alike(self, other: _Table) -> tuple[Indices, Indices]:
        if self._has_rows_of(other):
            return np.arange(len(self.numbers)), np.arange(len(other.numbers))
        names, others = self.names, other.names
        _, at, to = np.intersect1d(
            self.numbers, other.numbers, assume_unique=True, return_indices=True
        )
        if not set(names.tolist()) & set(others.tolist()) - {0}:
            return at, to
        ours, theirs = names[at], others[to]
        same = (ours == theirs) | (ours == 0) | (theirs == 0)
        at, to = at[same], to[same]
        left, right = _others(names != 0, at), _others(others != 0, to)
        _, x, y = np.intersect1d(names[left], others[right], return_indices=True)
        return np.concatenate([at, left[x]]), np.concatenate([to, right[y]])

    def _has_rows_of(self, other: _Table) -> bool:
        """Whether rows of the same numbers and tokens were read of both."""
        ours, theirs = self.named, other.named
        return (
            ours is not None
            and theirs is not None
            and np.array_equal(self.numbers, other.numbers)
            and np.array_equal(ours.ids, theirs.ids)
            and ours.tokens == theirs.tokens
        )

    def is_padded(self, paired: Indices) -> bool:
        """Whether rows without a partner tell nothing: constants, or one row again and again."""
        alone = _others(np.ones(len(self.rows), bool), paired)
        more = self.rows[alone]
        constant_rows = bool((more == more[:, :1]).all())
        repeated = len(more) > 1 and bool((more == more[:1]).all())
        return constant_rows or (repeated and not self.names[alone].any())


def _others(marked: NDArray[np.bool_], taken: Indices) -> Indices:
    """Places that are marked and not taken, in order."""
    marked[taken] = False
    return np.flatnonzero(marked)


def _picked(rows: Floats, places: Indices) -> Floats:
    """Rows at some places; not copied where these are all of them."""
    return rows if np.array_equal(places, np.arange(len(rows))) else rows[places]
