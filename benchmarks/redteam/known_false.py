"""Pairs of the short form about which something false is said today, each with the reason.

A pair leaves this list when it is told truly: its test fails until then.
"""

from __future__ import annotations

_REASONS: dict[str, str] = {}
KNOWN_FALSE = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Why something false is said, by the name of the pair."""
