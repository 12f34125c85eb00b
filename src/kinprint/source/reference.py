"""What a user typed, understood: a repository, a folder, a file or an address.

Pure apart from asking the file system whether a path exists, because a folder on disk
wins over a repository of the same name, as in the Hugging Face tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from kinprint.errors import BadReference
from kinprint.text import message

_HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co", "hub-ci.huggingface.co"})
_SCHEME = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*)://")
_WEIGHT_SUFFIXES = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt", ".json")
_LISTS = frozenset({"models", "datasets", "spaces", "docs", "collections", "papers"})
_PLAIN_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(@[^@\s]+)?$")


class Reference(Struct, frozen=True):
    """A parsed model name. `kind` is "hub", "local", "url" or, for all other schemes, "store".

    `place` is the repository id, path or address; `path` points inside a repository.
    """

    given: str
    kind: str
    place: str
    revision: str | None = None
    path: str = ""


def parse_reference(given: str) -> Reference:
    """Understand a model name; raise BadReference where it names nothing."""
    text = given.strip()
    if not text:
        raise BadReference(given=given, cause=message("cause.reference.empty"))
    if "\x00" in text:
        raise BadReference(given=given, cause=message("cause.reference.zero-byte"))
    try:
        return _parse(given, text)
    except (OSError, RuntimeError, ValueError) as error:
        # A path that is too long or unreadable, a user's folder without the user, an
        # address that is none.
        cause = message("cause.reference.unreadable", detail=str(error).rstrip("."))
        raise BadReference(given=given, cause=cause) from None


def _parse(given: str, text: str) -> Reference:
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _parse_bare(given, text)
    name = scheme.group(1).lower()
    if name in _SCHEMES:
        return _SCHEMES[name](given, text)
    return Reference(given, "store", name + text[scheme.end(1) :])


def _parse_web(given: str, text: str) -> Reference:
    if _on_hub(text):
        return _parse_hub(given, _as_hf_address(text))
    return Reference(given, "url", text)


def _parse_file(given: str, text: str) -> Reference:
    place = unquote(urlsplit(text).path)
    if not place:
        raise BadReference(given=given, cause=message("cause.reference.names-no-file"))
    return Reference(given, "local", place)


def _parse_bare(given: str, text: str) -> Reference:
    path = Path(text).expanduser()
    looks_local = text.startswith((".", "/", "~", "\\")) or bool(path.drive)
    looks_local = looks_local or text.find("/") == len(text) - 1  # a folder, as shells complete it
    if looks_local or path.exists():
        if not path.exists():
            raise BadReference(given=given, cause=message("cause.reference.no-such-path"))
        return Reference(given, "local", str(path))
    if text.split("/", 1)[0].lower() in _HUB_HOSTS:
        return _parse_hub(given, _as_hf_address("https://" + text))
    if text.count("/") >= 2 and Path(text.split("/", 1)[0]).is_dir():
        raise BadReference(given=given, cause=message("cause.reference.no-such-path"))
    if text.count("/") >= 1:
        return _parse_hub(given, "hf://" + text)
    if text.lower().endswith(_WEIGHT_SUFFIXES):
        raise BadReference(given=given, cause=message("cause.reference.no-such-file"))
    return _parse_single(given, text)


def _parse_single(given: str, text: str) -> Reference:
    """A name without an organisation, such as gpt2 or gpt2@main."""
    if not _PLAIN_NAME.match(text):
        raise BadReference(given=given, cause=message("cause.reference.odd-characters"))
    name, _, revision = text.partition("@")
    return Reference(given, "hub", name, revision or None)


def _parse_hub(given: str, address: str) -> Reference:
    body = address.removeprefix("hf://").removeprefix("https://huggingface.co/").rstrip("/")
    if not body:
        raise BadReference(given=given, cause=message("cause.reference.names-no-model"))
    if "/" not in body and body not in _LISTS:
        return _parse_single(given, body)
    from huggingface_hub.errors import HfUriError
    from huggingface_hub.utils import parse_hf_uri

    try:
        uri = parse_hf_uri(address)
    except HfUriError as error:
        cause = message("cause.reference.not-on-hub", detail=_first_clause(error.msg))
        raise BadReference(given=given, cause=cause) from None
    if uri.type != "model":
        cause = message("cause.reference.other-repository", kind=uri.type)
        raise BadReference(given=given, cause=cause)
    return Reference(given, "hub", uri.id, uri.revision, uri.path_in_repo.strip("/"))


def _first_clause(sentence: str) -> str:
    clause = sentence.strip().splitlines()[0].rstrip(".")
    return clause[:1].lower() + clause[1:]


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses have scheme, host and port in common."""
    return _origin(one) == _origin(other)


def _origin(address: str) -> tuple[str, str, int]:
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme.lower() == "https" else 80)
    return parts.scheme.lower(), (parts.hostname or "").lower(), port


def _on_hub(address: str) -> bool:
    """Whether a web address lies on the Hub or on the endpoint that stands in for it."""
    from huggingface_hub import constants

    host = (urlsplit(address).hostname or "").lower()
    return host in _HUB_HOSTS or _origin(address) == _origin(constants.ENDPOINT)


def _as_hf_address(address: str) -> str:
    """Rewrite a web address on the public host, whose routes the hub client can read."""
    from huggingface_hub import constants

    path = urlsplit(address).path
    prefix = urlsplit(constants.ENDPOINT).path.rstrip("/")
    if prefix and _origin(address) == _origin(constants.ENDPOINT):
        path = path.removeprefix(prefix)
    return "https://huggingface.co" + path


_SCHEMES: dict[str, Callable[[str, str], Reference]] = {
    "hf": _parse_hub,
    "http": _parse_web,
    "https": _parse_web,
    "file": _parse_file,
}
OWN_SCHEMES = frozenset(_SCHEMES)
"""Schemes that no other package can take."""
