"""What documents of several kinds begin and end with."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Sequence

from kinprint.records import ModelRef
from kinprint.report import schema
from kinprint.text import Message
from kinprint.version import __version__


def made_with(command: str) -> schema.Made:
    """With which versions a document was made, and by which command."""
    return schema.Made(
        kinprint=__version__,
        python=platform.python_version(),
        numpy=_version("numpy"),
        scipy=_version("scipy"),
        command=command,
    )


def titled(
    messages: Iterable[Message], refs: Sequence[ModelRef], titles: Sequence[str]
) -> list[Message]:
    """Remarks on models, which are called by their titles and not by their paths."""
    known = {ref.name: title for ref, title in zip(refs, titles, strict=True)}
    return [
        Message(one.key, {**one.fields, "model": known.get(name, name)})
        if isinstance(name := one.fields.get("model"), str)
        else one
        for one in messages
    ]


def _version(package: str) -> str:
    """The version of a package that took part; empty where it was not loaded."""
    return str(getattr(sys.modules.get(package), "__version__", ""))
