"""The unmodified huggingface_hub client against the mirror."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import (
    HfApi,
    HfFileSystem,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    snapshot_download,
)
from huggingface_hub.errors import (
    EntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile, RepoFolder

from kinprint.mirror import MirrorServer

TOKEN = "hf_owner"


@pytest.fixture
def api(mirror: MirrorServer) -> HfApi:
    return HfApi(endpoint=mirror.endpoint, token=False)


def test_model_info_with_files(api: HfApi, zoo: Path) -> None:
    info = api.model_info("org/llama", files_metadata=True)
    assert info.id == "org/llama" and info.author == "org"
    assert info.sha is not None and len(info.sha) == 40
    assert info.safetensors is not None and info.safetensors.parameters == {"F32": 1003}
    assert info.config == {"model_type": "llama", "architectures": ["L"]}
    assert info.card_data is not None and info.card_data.base_model == "org/base"
    assert info.tags is not None and "base_model:org/base" in info.tags
    assert info.siblings is not None
    files = {sibling.rfilename: sibling for sibling in info.siblings}
    weights = (zoo / "org/llama/model.safetensors").read_bytes()
    large = files["model.safetensors"]
    assert large.lfs is not None and large.size == len(weights)
    assert large.lfs.sha256 == hashlib.sha256(weights).hexdigest()
    pointer = (
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{large.lfs.sha256}\n"
        f"size {len(weights)}\n"
    ).encode()
    assert large.lfs.pointer_size == len(pointer)
    assert large.blob_id == _git_oid(pointer)
    config = (zoo / "org/llama/config.json").read_bytes()
    assert files["config.json"].blob_id == _git_oid(config)
    assert files["config.json"].lfs is None


def _git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def test_sharded_parameter_count(api: HfApi) -> None:
    info = api.model_info("bare")
    assert info.author is None
    assert info.safetensors is not None and info.safetensors.total == 14


def test_expand_sends_what_was_asked_for(api: HfApi) -> None:
    info = api.model_info("org/llama", expand=["sha", "safetensors", "gated"])
    assert info.sha and info.safetensors is not None and info.gated is False
    assert info.siblings is None and info.tags is None


def test_tree(api: HfApi) -> None:
    top = list(api.list_repo_tree("org/llama"))
    assert [entry.path for entry in top] == [
        "original",
        "README.md",
        "config.json",
        "model.safetensors",
    ]
    assert isinstance(top[0], RepoFolder)
    every = [entry.path for entry in api.list_repo_tree("org/llama", recursive=True)]
    assert every[:4] == [
        "original",
        "original/deep",
        "original/deep/notes 1+2.txt",
        "original/params.json",
    ]
    below = [entry.path for entry in api.list_repo_tree("org/llama", "original/deep")]
    assert below == ["original/deep/notes 1+2.txt"]
    expanded = list(api.list_repo_tree("org/llama", expand=True, recursive=True))
    assert all(entry.last_commit is not None for entry in expanded)
    with pytest.raises(EntryNotFoundError):
        list(api.list_repo_tree("org/llama", "nowhere"))


def test_tree_pages(zoo: Path) -> None:
    with MirrorServer(zoo, page_size=2) as server:
        api = HfApi(endpoint=server.endpoint, token=False)
        every = [entry.path for entry in api.list_repo_tree("org/llama", recursive=True)]
        assert len(every) == len(set(every)) == 7
        assert server.stats.count("hub", "GET") == 4
        assert len(list(api.list_models())) == 4


def test_paths_info(api: HfApi) -> None:
    found = api.get_paths_info(
        "org/llama", ["model.safetensors", "original", "nowhere"], expand=True
    )
    assert [entry.path for entry in found] == ["model.safetensors", "original"]
    assert isinstance(found[0], RepoFile) and found[0].lfs is not None
    assert isinstance(found[1], RepoFolder)


def test_refs_commits_and_branches(api: HfApi) -> None:
    refs = api.list_repo_refs("org/llama", include_pull_requests=True)
    assert [branch.name for branch in refs.branches] == ["main", "v2"]
    assert refs.pull_requests == []
    by_name = api.model_info("org/llama", revision="v2")
    assert by_name.sha == refs.branches[1].target_commit
    by_commit = api.model_info("org/llama", revision=by_name.sha)
    assert by_commit.sha == by_name.sha
    commits = api.list_repo_commits("org/llama")
    assert [commit.commit_id for commit in commits] == [refs.branches[0].target_commit]


def test_list_models(api: HfApi) -> None:
    assert [model.id for model in api.list_models()] == ["bare", "org/llama", "other/gated"]
    assert [model.id for model in api.list_models(search="LLAM")] == ["org/llama"]
    assert [model.id for model in api.list_models(author="other")] == ["other/gated"]
    assert [model.id for model in api.list_models(gated=True)] == ["other/gated"]
    full = next(iter(api.list_models(search="llama", full=True)))
    assert full.sha and full.siblings
    assert next(iter(api.list_models(search="llama"))).siblings is None


def test_missing_things_have_their_own_errors(api: HfApi) -> None:
    with pytest.raises(RepositoryNotFoundError) as missing:
        api.model_info("org/nothing")
    assert missing.value.response.status_code == 401
    with pytest.raises(RevisionNotFoundError):
        api.model_info("org/llama", revision="nope")
    with pytest.raises(RevisionNotFoundError):
        api.model_info("org/llama", revision="0" * 40)
    assert api.file_exists("org/llama", "config.json")
    assert not api.file_exists("org/llama", "nope.json")
    assert not api.repo_exists("org/nothing")
    assert not api.revision_exists("org/llama", "nope")


def test_file_metadata(mirror: MirrorServer, zoo: Path) -> None:
    large = get_hf_file_metadata(
        hf_hub_url("org/llama", "model.safetensors", endpoint=mirror.endpoint), token=False
    )
    content = (zoo / "org/llama/model.safetensors").read_bytes()
    assert large.etag == hashlib.sha256(content).hexdigest() and large.size == len(content)
    assert large.location.startswith(mirror.storage_endpoint)
    assert large.commit_hash is not None and len(large.commit_hash) == 40
    small = get_hf_file_metadata(
        hf_hub_url("org/llama", "config.json", endpoint=mirror.endpoint), token=False
    )
    assert small.etag == _git_oid((zoo / "org/llama/config.json").read_bytes())
    assert small.location.startswith(mirror.endpoint)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_download_one_file(mirror: MirrorServer, zoo: Path, tmp_path: Path, name: str) -> None:
    got = hf_hub_download(
        "org/llama", name, endpoint=mirror.endpoint, cache_dir=tmp_path, token=TOKEN
    )
    assert Path(got).read_bytes() == (zoo / "org/llama" / name).read_bytes()
    assert mirror.stats.tokens_seen_by_storage == 0
    assert mirror.stats.count("storage", "GET") == (name == "model.safetensors")


def test_snapshot_with_odd_names(mirror: MirrorServer, zoo: Path, tmp_path: Path) -> None:
    got = snapshot_download("org/llama", endpoint=mirror.endpoint, cache_dir=tmp_path, token=False)
    mine = {path.relative_to(got): path.read_bytes() for path in Path(got).rglob("*.*")}
    source = zoo / "org/llama"
    assert mine == {path.relative_to(source): path.read_bytes() for path in source.rglob("*.*")}


def test_safetensors_metadata_and_no_token_at_storage(mirror: MirrorServer) -> None:
    api = HfApi(endpoint=mirror.endpoint, token=TOKEN)
    metadata = api.get_safetensors_metadata("org/llama")
    assert metadata.parameter_count == {"F32": 1003}
    assert mirror.stats.count("storage") == 1
    assert mirror.stats.tokens_seen_by_storage == 0


def test_file_system(mirror: MirrorServer, zoo: Path) -> None:
    files = HfFileSystem(endpoint=mirror.endpoint, token=TOKEN, skip_instance_cache=True)
    assert files.glob("org/llama/*.json") == ["org/llama/config.json"]
    assert "org/llama/original" in files.ls("org/llama", detail=False)
    content = (zoo / "org/llama/model.safetensors").read_bytes()
    assert files.cat("org/llama/model.safetensors") == content
    assert files.cat("org/llama@v2/config.json") == b'{"model_type": "llama2"}'
    with files.open("org/llama/model.safetensors", block_size=64) as file:
        file.seek(100)
        assert file.read(50) == content[100:150]
    assert mirror.stats.tokens_seen_by_storage == 0


def test_whoami(mirror: MirrorServer) -> None:
    assert HfApi(endpoint=mirror.endpoint, token=TOKEN).whoami()["name"] == "owner"


_SCRIPT = """
import json
from huggingface_hub import HfApi, snapshot_download
metadata = HfApi().get_safetensors_metadata("bare")
folder = snapshot_download("bare")
print(json.dumps([folder, metadata.parameter_count]))
"""


def test_end_to_end_in_two_processes(zoo: Path, tmp_path: Path) -> None:
    mirror = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "kinprint", "mirror", str(zoo), "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert mirror.stderr is not None
        said = [mirror.stderr.readline() for _ in range(3)]
        assert said[0].startswith("Serving 4 models")
        name, _, endpoint = said[1].strip().removeprefix("export ").partition("=")
        assert name == "HF_ENDPOINT"
        environment = {**os.environ, name: endpoint, "HF_HOME": str(tmp_path)}
        for unwanted in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
            environment.pop(unwanted, None)
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        folder, count = json.loads(done.stdout)
        assert count == {"F32": 14}
        assert (Path(folder) / "m-2.safetensors").read_bytes() == (
            zoo / "bare/m-2.safetensors"
        ).read_bytes()
    finally:
        mirror.terminate()
        rest = mirror.communicate(timeout=120)[1]
    assert rest == ""
