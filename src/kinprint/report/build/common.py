"""What documents of several kinds begin and end with."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from importlib import import_module

import numpy as np

from kinprint.records import ModelRef
from kinprint.report import schema
from kinprint.text import Message
from kinprint.version import __version__


def made_with(command: str, *, grouped: bool = False) -> schema.Made:
    """With which versions a document was made, and by which command.

    Where models were `grouped`, SciPy did it; it takes part in nothing else.
    """
    return schema.Made(
        kinprint=__version__,
        python=platform.python_version(),
        numpy=np.__version__,
        scipy=import_module("scipy").__version__ if grouped else "",
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
