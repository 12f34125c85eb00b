"""Which folders are repositories, what their commits are, and what is never served."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinprint.errors import RepositoryMissing, RevisionMissing
from kinprint.mirror import MirrorServer
from kinprint.mirror.folder import MAIN, Library

Get = Callable[..., Any]


def commit_of(library: Library, name: str, revision: str = MAIN) -> str:
    library.refresh()
    repository = library.find(name)
    assert repository is not None
    snapshot = library.snapshot(repository, revision)
    assert snapshot is not None
    return snapshot.commit


def test_what_is_a_repository(fresh_zoo: Path) -> None:
    (fresh_zoo / "bare" / "onnx").mkdir()
    (fresh_zoo / "bare" / "onnx" / "model.onnx").write_bytes(b"x")
    (fresh_zoo / ".hidden").mkdir()
    (fresh_zoo / ".hidden" / "config.json").write_text("{}")
    (fresh_zoo / "empty" / "nothing").mkdir(parents=True)
    (fresh_zoo / "org" / "README.md").write_text("about us")
    library = Library(fresh_zoo)
    assert library.ids() == ["bare", "org/llama", "other/gated", "other/secret"]
    for name in ("bare/onnx", "org", ".hidden", "org/llama@v2", "../fresh/bare", "", "a/b/c"):
        assert library.find(name) is None, name


def test_commits_follow_the_content(fresh_zoo: Path) -> None:
    library = Library(fresh_zoo, refresh_seconds=60)
    before = commit_of(library, "org/llama")
    assert commit_of(library, "org/llama") == before == commit_of(Library(fresh_zoo), "org/llama")
    assert commit_of(library, "org/llama", "v2") != before == commit_of(library, "org/llama")
    (fresh_zoo / "org/llama/extra.json").write_text("{}")
    repository = library.find("org/llama")
    assert repository is not None
    remembered = library.snapshot(repository, MAIN)
    assert remembered is not None and remembered.commit == before
    added = commit_of(library, "org/llama")
    assert added != before
    assert library.snapshot(repository, before) is None
    (fresh_zoo / "org/llama/extra.json").write_text("[1]")
    assert commit_of(library, "org/llama") not in (before, added)


def test_pull_requests_and_slashes(fresh_zoo: Path) -> None:
    folder = fresh_zoo / "org" / "llama@refs%2Fpr%2F1"
    folder.mkdir()
    (folder / "config.json").write_text("[]")
    with MirrorServer(fresh_zoo) as server:
        api = HfApi(endpoint=server.endpoint, token=False)
        refs = api.list_repo_refs("org/llama", include_pull_requests=True)
        assert refs.pull_requests is not None
        assert [ref.name for ref in refs.pull_requests] == ["refs/pr/1"]
        assert api.file_exists("org/llama", "config.json", revision="refs/pr/1")
        info = api.model_info("org/llama", revision="refs/pr/1")
        assert info.sha == refs.pull_requests[0].target_commit


def test_repoint_keeps_the_old_commit(mirror: MirrorServer, fresh_zoo: Path, get: Get) -> None:
    with MirrorServer(fresh_zoo) as server:
        api = HfApi(endpoint=server.endpoint, token=False)
        old = api.model_info("org/llama").sha
        new = api.model_info("org/llama", revision="v2").sha
        server.repoint("org/llama", "main", "v2")
        assert api.model_info("org/llama").sha == new != old
        assert [commit.commit_id for commit in api.list_repo_commits("org/llama")] == [new, old]
        address = f"{server.endpoint}/org/llama/resolve/{{}}/config.json"
        assert b"llama2" in get(address.format("main")).body
        assert b"llama2" not in get(address.format(old)).body
        server.repoint("org/llama", "main", "main")
        assert api.model_info("org/llama").sha == old
        with pytest.raises(RevisionMissing):
            server.repoint("org/llama", "main", "nope")
        with pytest.raises(RepositoryMissing):
            server.repoint("org/nope", "main", "main")


def test_other_files_of_an_owner_hide_no_model(fresh_zoo: Path) -> None:
    (fresh_zoo / "org" / "zoo.json").write_text("{}")
    with MirrorServer(fresh_zoo) as server:
        assert (
            HfApi(endpoint=server.endpoint, token=False).model_info("org/llama").id == "org/llama"
        )


def test_nothing_outside_is_served(fresh_zoo: Path, get: Get) -> None:
    outside = fresh_zoo.parent / "outside.json"
    outside.write_text('"secret"')
    repo = fresh_zoo / "org" / "llama"
    (repo / "escape.json").symlink_to(outside)
    (repo / "away").symlink_to(fresh_zoo.parent, target_is_directory=True)
    (repo / "inside.json").symlink_to(repo / "config.json")
    (repo / ".git").mkdir()
    (repo / ".git" / "config").write_text("x")
    if hasattr(os, "mkfifo"):
        os.mkfifo(repo / "pipe.json")
    with MirrorServer(fresh_zoo) as server:
        names = [f.path for f in HfApi(endpoint=server.endpoint).list_repo_tree("org/llama")]
        assert "inside.json" in names
        assert not {"escape.json", "away", ".git", "pipe.json"} & set(names)
        for path in (
            "escape.json",
            "away/outside.json",
            ".git/config",
            "../../../outside.json",
            "..%2F..%2F..%2Foutside.json",
            "%2e%2e/%2e%2e/%2e%2e/outside.json",
            "%2Fetc%2Fpasswd",
            "/etc/passwd",
            "original/../config.json",
            "config.json%00",
        ):
            answer = get(f"{server.endpoint}/org/llama/resolve/main/{path}")
            assert (answer.status, answer.headers["x-error-code"]) == (404, "EntryNotFound")
        for path in ("../fresh/bare", "..%2Ffresh/bare", "org/..", "%2e%2e/x"):
            assert get(f"{server.endpoint}/{path}/resolve/main/config.json").status in (401, 404)
            assert get(f"{server.endpoint}/api/models/{path}").status in (401, 404)


_PARTS = st.sampled_from(
    [
        "api",
        "models",
        "org",
        "llama",
        "resolve",
        "main",
        "tree",
        "revision",
        "refs",
        "commits",
        "paths-info",
        "config.json",
        "bare",
        "v2",
        "..",
        "%2F",
        "%00",
        "%ff",
        "-",
        "stats",
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    parts=st.lists(_PARTS, max_size=7),
    method=st.sampled_from(["GET", "HEAD", "POST"]),
    query=st.sampled_from(["", "?recursive=true", "?limit=0", "?limit=x", "?cursor=LTU=", "?%ff"]),
)
def test_no_address_breaks_it(
    mirror: MirrorServer, get: Get, parts: list[str], method: str, query: str
) -> None:
    answer = get(f"{mirror.endpoint}/{'/'.join(parts)}{query}", method=method)
    assert answer.status < 500


def test_a_linked_repository_is_the_owners_choice(zoo: Path, tmp_path: Path, get: Get) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "linked").symlink_to(zoo / "org" / "llama", target_is_directory=True)
    with MirrorServer(shelf) as server:
        answer = get(f"{server.endpoint}/linked/resolve/main/model.safetensors")
        content = (zoo / "org/llama/model.safetensors").read_bytes()
        assert get(answer.headers["location"]).body == content


def test_a_file_that_changes_is_noticed_at_once(fresh_zoo: Path, get: Get) -> None:
    config = fresh_zoo / "bare" / "config.json"
    with MirrorServer(fresh_zoo, refresh_seconds=60) as server:
        address = f"{server.endpoint}/bare/resolve/main/config.json"
        first = get(address)
        config.write_text('{"longer": true}')
        second = get(address)
        assert second.body == b'{"longer": true}'
        assert second.headers["x-repo-commit"] != first.headers["x-repo-commit"]
        assert second.headers["etag"] != first.headers["etag"]
        config.unlink()
        assert get(address).headers["x-error-code"] == "EntryNotFound"
