"""Gates, private repositories and wrong tokens, told apart as the Hub tells them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
)

from kinprint.mirror import MirrorServer
from kinprint.mirror.access import Caller, Refused, Rules

TOKEN = "hf_owner"
GUEST = "hf_guest"
Get = Callable[..., Any]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_gated_metadata_is_public_and_files_are_not(mirror: MirrorServer, get: Get) -> None:
    info = HfApi(endpoint=mirror.endpoint, token=False).model_info("other/gated")
    assert info.gated == "manual"
    address = f"{mirror.endpoint}/other/gated/resolve/main/config.json"
    for headers, status in (({}, 401), (bearer(GUEST), 403), (bearer(TOKEN), 200)):
        for method in ("GET", "HEAD"):
            answer = get(address, method=method, headers=headers)
            assert answer.status == status
            if status != 200:
                assert answer.headers["x-error-code"] == "GatedRepo"
                assert "restricted" in answer.headers["x-error-message"]


def test_gated_with_the_client(mirror: MirrorServer, tmp_path: Path) -> None:
    for token in (False, GUEST):
        with pytest.raises(GatedRepoError):
            hf_hub_download(
                "other/gated",
                "model.safetensors",
                endpoint=mirror.endpoint,
                cache_dir=tmp_path,
                token=token,
            )
        api = HfApi(endpoint=mirror.endpoint, token=token)
        with pytest.raises(GatedRepoError):
            api.auth_check("other/gated")
        api.auth_check("org/llama")
    hf_hub_download(
        "other/gated",
        "model.safetensors",
        endpoint=mirror.endpoint,
        cache_dir=tmp_path,
        token=TOKEN,
    )
    assert mirror.stats.tokens_seen_by_storage == 0


def test_private_looks_missing(mirror: MirrorServer, get: Get) -> None:
    for name in ("other/secret", "other/absent"):
        for path in (f"api/models/{name}", f"{name}/resolve/main/config.json"):
            stranger = get(f"{mirror.endpoint}/{path}")
            assert (stranger.status, stranger.headers["x-error-code"]) == (401, "RepoNotFound")
            guest = get(f"{mirror.endpoint}/{path}", headers=bearer(GUEST))
            assert (guest.status, guest.headers["x-error-code"]) == (404, "RepoNotFound")
    with pytest.raises(RepositoryNotFoundError):
        HfApi(endpoint=mirror.endpoint, token=False).model_info("other/secret")
    owner = HfApi(endpoint=mirror.endpoint, token=TOKEN)
    assert owner.model_info("other/secret").private is True
    assert "other/secret" in [model.id for model in owner.list_models()]


def test_a_wrong_token_opens_nothing(mirror: MirrorServer, get: Get) -> None:
    for path in ("api/models/org/llama", "org/llama/resolve/main/config.json", "api/whoami-v2"):
        answer = get(f"{mirror.endpoint}/{path}", headers=bearer("wrong"))
        assert answer.status == 401
        message = "Invalid credentials in Authorization header"
        assert answer.headers["x-error-message"] == message
        assert "x-error-code" not in answer.headers
    with pytest.raises(HfHubHTTPError) as wrong:
        HfApi(endpoint=mirror.endpoint, token="wrong").model_info("org/llama")
    assert not isinstance(wrong.value, RepositoryNotFoundError)
    anonymous = get(f"{mirror.endpoint}/api/whoami-v2")
    assert (anonymous.status, json.loads(anonymous.body)) == (
        401,
        {"error": "Invalid username or password."},
    )


def test_missing_entry_names_the_commit(mirror: MirrorServer, get: Get) -> None:
    answer = get(f"{mirror.endpoint}/org/llama/resolve/main/nope.bin", method="HEAD")
    assert (answer.status, answer.headers["x-error-code"]) == (404, "EntryNotFound")
    assert len(answer.headers["x-repo-commit"]) == 40
    answer = get(f"{mirror.endpoint}/org/llama/resolve/no%0d%0ape/config.json")
    assert (answer.status, answer.headers["x-error-code"]) == (404, "RevisionNotFound")
    assert answer.headers["x-error-message"] == "Invalid rev id: no??pe"


def test_any_token_is_a_guest_where_none_is_set() -> None:
    rules = Rules(gated=("a/*",))
    assert rules.caller("Bearer whatever") is Caller.GUEST
    assert rules.caller(None) is Caller.ANONYMOUS
    rules.check_files(Caller.GUEST, "b/c", "http://h")
    with pytest.raises(Refused):
        rules.check_files(Caller.GUEST, "a/c", "http://h")
    with pytest.raises(Refused):
        rules.caller("Basic abc")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "x",
        "api",
        "api/nothing",
        "api/models/org/llama/whatever",
        "org/llama/blob/main/x",
        "-/x",
    ],
)
def test_other_addresses_are_not_found(mirror: MirrorServer, get: Get, path: str) -> None:
    assert get(f"{mirror.endpoint}/{path}").status == 404


def test_other_methods_and_bad_queries(mirror: MirrorServer, get: Get) -> None:
    assert get(f"{mirror.endpoint}/api/models/org/llama", method="PUT").status == 405
    address = f"{mirror.endpoint}/org/llama/resolve/main/config.json"
    assert get(address, method="DELETE").status == 405
    assert get(f"{mirror.endpoint}/api/models/org/llama?expand=nonsense").status == 400
    assert get(f"{mirror.endpoint}/api/models?cursor=!!").status == 400
    assert get(f"{mirror.endpoint}/api/datasets/org/llama").status == 401
    paths = f"{mirror.endpoint}/api/models/org/llama/paths-info/main"
    as_json = {"Content-Type": "application/json"}
    body = b'{"paths": ["config.json"], "expand": false}'
    assert len(json.loads(get(paths, method="POST", body=body, headers=as_json).body)) == 1
    assert get(paths, method="POST", body=b"[", headers=as_json).status == 400
