"""Variables that libraries read when they are loaded, looked at before that."""

from __future__ import annotations

import contextlib
import os
from urllib.parse import urlsplit

from kinprint import text
from kinprint.errors import BadOption

_STACK = 1 << 20
_M_ARENA_MAX = -8  # of glibc's malloc.h


def check_environment() -> None:
    """Refuse variables that the hub client cannot use, with a sentence."""
    endpoint = os.environ.get("HF_ENDPOINT")
    if endpoint and not _is_address(endpoint):
        _refuse("HF_ENDPOINT", endpoint, "cause.environment.address")
    for name in ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT"):
        value = os.environ.get(name)
        if value and not (value.isascii() and value.isdigit()):
            _refuse(name, value, "cause.environment.seconds")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if not os.environ.get(name, "").isascii():
            _refuse(name, "…", "cause.environment.ascii")
    if "HF_DEBUG" not in os.environ:
        # One sentence at the end says what went wrong; the client's own lines can be asked for.
        os.environ.setdefault("HF_HUB_VERBOSITY", "error")


def save_address_space() -> None:
    """Under `ulimit -v`, take what threads need and not what they might.

    The C library sets aside 8 MiB of stack for each thread and 64 MiB of heap for many of them,
    and OpenBLAS a buffer for each core; it ends the process where it finds no room.
    """
    try:
        import resource
    except ImportError:  # no such limit on this system
        return
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import ctypes
    import threading

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    threading.stack_size(_STACK)
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def _is_address(given: str) -> bool:
    try:
        parts = urlsplit(given)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _refuse(name: str, value: str, key: str) -> None:
    raise BadOption(option=name, value=value, cause=text.message(key))
