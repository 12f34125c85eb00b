"""What reading costs, in words."""

from __future__ import annotations

from kinprint import text
from kinprint.reader.sizes import in_words
from kinprint.records import Cost


def cost_message(cost: Cost) -> text.Message:
    """Such as "12 kB in 3 requests"."""
    return text.message("report.cost.amount", size=in_words(cost.bytes), count=cost.requests)


def cost_line(cost: Cost, language: str) -> str:
    """What was read and how long it took."""
    if not cost.requests:
        return text.say("report.cost.nothing", language, seconds=cost.seconds)
    return text.say("report.cost.read", language, cost=cost_message(cost), seconds=cost.seconds)


def size_in_words(nbytes: int) -> str:
    """Such as "12 kB"."""
    return in_words(nbytes)
