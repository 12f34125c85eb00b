"""Pairs about which something false is said today, each with the reason.

A pair leaves this list when it is told truly: its test fails until then.
"""

from __future__ import annotations

_REASONS = {
    "gains were written in, and columns of neither model tell that they were": (
        "twins-hardly-trained-with-gains"
    ),
}
KNOWN_FALSE = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Why something false is said, by the name of the pair."""
