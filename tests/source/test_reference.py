"""What users type, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kinprint.errors import BadReference
from kinprint.source.reference import Reference, parse_reference


@pytest.mark.parametrize(
    ("given", "kind", "place", "revision", "path"),
    [
        ("org/name", "hub", "org/name", None, ""),
        ("gpt2", "hub", "gpt2", None, ""),
        ("gpt2@v1", "hub", "gpt2", "v1", ""),
        ("hf://gpt2", "hub", "gpt2", None, ""),
        ("https://huggingface.co/gpt2", "hub", "gpt2", None, ""),
        ("org/name@v1.0", "hub", "org/name", "v1.0", ""),
        ("org/name@refs/pr/3", "hub", "org/name", "refs/pr/3", ""),
        ("org/name/sub/file.gguf", "hub", "org/name", None, "sub/file.gguf"),
        ("hf://org/name", "hub", "org/name", None, ""),
        ("hf://models/org/name@dev/x.safetensors", "hub", "org/name", "dev", "x.safetensors"),
        ("https://huggingface.co/org/name", "hub", "org/name", None, ""),
        ("https://huggingface.co/org/name/", "hub", "org/name", None, ""),
        ("huggingface.co/org/name/tree/v2", "hub", "org/name", "v2", ""),
        ("https://hf.co/org/name/blob/main/a.gguf?download=1", "hub", "org/name", "main", "a.gguf"),
        ("https://hf.co/org/name/resolve/main/s/a.bin", "hub", "org/name", "main", "s/a.bin"),
        ("https://example.org/m.gguf", "url", "https://example.org/m.gguf", None, ""),
        ("s3://bucket/model", "store", "s3://bucket/model", None, ""),
        ("gs://bucket/model", "store", "gs://bucket/model", None, ""),
    ],
)  # fmt: skip
def test_names(given: str, kind: str, place: str, revision: str | None, path: str) -> None:
    assert parse_reference(given) == Reference(given, kind, place, revision, path)


@pytest.mark.parametrize(
    "given",
    [
        "", "   ", "./nothing/here", "/no/such/folder", "~/no-such-folder", "model.safetensors",
        "hf://", "hf://datasets/org/name", "https://huggingface.co/datasets/org/name",
        "https://huggingface.co/", "https://huggingface.co/models", "a b", "x\x00y", "what?",
        "https://[::1/x", "https://host:99999/m.gguf", "https://host:abc/m.gguf", "x" * 300 + "/y",
        "~nosuchuser/model",
    ],
)  # fmt: skip
def test_what_names_nothing_is_refused(given: str) -> None:
    with pytest.raises(BadReference) as caught:
        parse_reference(given)
    assert "org/name" in str(caught.value)


def test_a_folder_wins_over_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_reference("org/name").kind == "hub"
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert parse_reference("org/name").kind == "local"
    with pytest.raises(BadReference, match="no such file or folder"):
        parse_reference("org/name/mistyped.safetensors")


def test_addresses_on_the_endpoint_are_repositories(
    point_hub_at: Callable[[str], None],
) -> None:
    point_hub_at("http://127.0.0.1:8123/hub")
    found = parse_reference("http://127.0.0.1:8123/hub/org/name/tree/v2")
    assert (found.kind, found.place, found.revision) == ("hub", "org/name", "v2")
    other_port = parse_reference("http://127.0.0.1:9999/org/name/model.safetensors")
    assert other_port.kind == "url"
