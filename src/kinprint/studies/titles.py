"""What people call roles and measures."""

from __future__ import annotations

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.text import Words


def role_title(role: str) -> Words:
    """A role's name for people; its own where there is no better one."""
    key = f"role.{role}"
    return text.words(key) if text.knows(key) else text.plain(role)


def measure_title(measure: str) -> Words:
    """A measure's name for people."""
    return measures()[measure].title
