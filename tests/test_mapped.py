"""Numbers on disk: the same ones, mapped by whoever looks at them."""

from __future__ import annotations

import errno
import os
from typing import Any

import numpy as np
import pytest

from kinprint.mapped import arrays_on_disk, keep, let_go, shelf


def test_what_is_on_a_shelf_is_read_where_it_lies() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    value = {"rows": rows, "name": "one", "none": np.empty((0, 2))}
    with shelf() as place:
        first, second = place.put(value), place.put(["another", np.ones(5)])
        found, other = first.load(), second.load()
        assert first.nbytes > rows.nbytes
        assert found["name"] == "one" and found["none"].shape == (0, 2) and other[0] == "another"
        for _ in range(2):
            np.testing.assert_array_equal(found["rows"], rows)
            np.testing.assert_array_equal(other[1], np.ones(5))
            let_go()
        assert not found["rows"].flags.owndata and not found["rows"].flags.writeable
        late = place.put("later")
        assert late.load() == "later"


def test_large_arrays_are_kept_on_disk_where_that_was_asked_for() -> None:
    large, small = np.random.default_rng(0).normal(size=(700, 401)), np.ones(9)
    stored = large.T.astype(np.float32)
    assert keep(large) is large
    with arrays_on_disk():
        found = [keep(large) for _ in range(40)]  # more than one file holds
        turned = keep(stored)
        assert keep(small) is small
        with arrays_on_disk():
            inner = keep(large)
    assert keep(large) is large
    let_go()
    for one in (*found, inner):
        assert one.dtype == large.dtype and not one.flags.owndata and not one.flags.writeable
        np.testing.assert_array_equal(one, large)
    np.testing.assert_array_equal(turned, stored)


def test_where_there_is_no_room_arrays_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    large = np.ones((1000, 1000))
    with arrays_on_disk():
        monkeypatch.setattr(os, "pwrite", full)
        assert keep(large) is large
        monkeypatch.undo()
        assert keep(large) is not large
