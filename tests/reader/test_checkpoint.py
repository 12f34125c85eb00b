"""Checkpoints in all formats and places give the same numbers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from kinprint.errors import (
    BadHeader,
    BadIndex,
    FileMissing,
    FormatError,
    PartsMissing,
    TensorMissing,
    TensorUnknown,
)
from kinprint.mirror import MirrorServer
from kinprint.reader.cache import Cache
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import Slice, TensorSpec
from tests.reader.formats.gguf import builder


@pytest.fixture
def fetcher(tmp_path: Path) -> Iterator[Fetcher]:
    with Fetcher(cache=Cache(tmp_path / "cache")) as made:
        yield made


@pytest.fixture
def truth(demo: Path) -> dict[str, np.ndarray]:
    """All tensors of base-b as the official library reads them."""
    found: dict[str, np.ndarray] = {}
    for file in sorted((demo / "zoo/base-b").glob("*.safetensors")):
        with safe_open(file, "numpy") as opened:
            found |= {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    return found


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8)


@pytest.mark.parametrize("place", ["hub", "local"])
def test_every_tensor_is_what_the_official_library_reads(
    place: str,
    mirror: MirrorServer,
    fetcher: Fetcher,
    demo: Path,
    truth: dict[str, np.ndarray],
) -> None:
    name = "zoo/base-b" if place == "hub" else str(demo / "zoo/base-b")
    checkpoint = open_checkpoint(name, fetcher)
    specs = checkpoint.tensors()
    assert set(specs) == set(truth) == set(checkpoint.names())
    arrays = checkpoint.read([Slice(spec) for spec in specs.values()], as_stored=True)
    for name, array in zip(specs, arrays, strict=True):
        assert array.shape == truth[name].shape
        np.testing.assert_array_equal(bits(array), bits(truth[name]))


def test_rows_and_columns_over_http(
    mirror: MirrorServer, fetcher: Fetcher, truth: dict[str, np.ndarray]
) -> None:
    name = "model.layers.3.mlp.down_proj.weight"
    checkpoint = open_checkpoint("zoo/base-b", fetcher)
    spec = checkpoint.tensors([name])[name]
    rows, block, few = checkpoint.read(
        [
            Slice(spec, rows=(5, 90, 2)),
            Slice(spec, rows=range(10, 12), columns=range(7, 9)),
            Slice(spec, elements=(0, 351, 352, 1)),
        ],
        as_stored=True,
    )
    full = truth[name]
    np.testing.assert_array_equal(bits(rows), bits(full[[5, 90, 2]]))
    np.testing.assert_array_equal(bits(block), bits(full[10:12, 7:9]))
    np.testing.assert_array_equal(bits(few), bits(full.reshape(-1)[[0, 351, 352, 1]]))


def test_short_floats_are_widened_so_that_sums_are_right(fetcher: Fetcher, demo: Path) -> None:
    checkpoint = open_checkpoint(str(demo / "zoo/base-a"), fetcher)
    part = Slice(checkpoint.tensors(["model.norm.weight"])["model.norm.weight"])
    (wide,), (stored,) = checkpoint.read([part]), checkpoint.read([part], as_stored=True)
    assert wide.dtype == np.float32
    assert stored.dtype.itemsize == 2
    exact = stored.astype(np.float64)
    np.testing.assert_array_equal(wide, exact)
    assert wide.mean() == pytest.approx(exact.mean(), rel=1e-6)


def test_only_the_shards_that_are_needed_are_touched(
    mirror: MirrorServer, fetcher: Fetcher
) -> None:
    checkpoint = open_checkpoint("zoo/base-b", fetcher)
    mirror.stats.reset()
    name = "model.norm.weight"
    (norm,) = checkpoint.read([Slice(checkpoint.tensors([name])[name])])
    assert norm.shape == (128,)
    touched = {seen.path for seen in mirror.stats.last if seen.port == "hub"}
    assert len(touched) == 1
    assert mirror.stats.storage_body_bytes < 40_000


def make_sharded(folder: Path, *, weight_map: dict[str, str] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    first = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3)}
    second = {"b.weight": np.ones(4, dtype=np.float32)}
    save_file(first, folder / "model-00001-of-00002.safetensors")
    save_file(second, folder / "model-00002-of-00002.safetensors")
    named = weight_map or {
        "a.weight": "model-00001-of-00002.safetensors",
        "b.weight": "model-00002-of-00002.safetensors",
    }
    index = {"metadata": {"total_size": 40}, "weight_map": named}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def open_local(folder: Path, fetcher: Fetcher) -> Checkpoint:
    return open_checkpoint(str(folder), fetcher)


def test_shards_without_an_index(tmp_path: Path, fetcher: Fetcher) -> None:
    folder = make_sharded(tmp_path / "m")
    (folder / "model.safetensors.index.json").unlink()
    assert set(open_local(folder, fetcher).tensors()) == {"a.weight", "b.weight"}
    (folder / "model-00001-of-00002.safetensors").rename(
        folder / "model-00003-of-00002.safetensors"
    )
    shutil.copy(
        folder / "model-00002-of-00002.safetensors", folder / "model-00001-of-00002.safetensors"
    )
    with pytest.raises(BadHeader, match="too"):
        open_local(folder, fetcher).tensors()


def test_a_missing_part_is_noticed_without_an_index(tmp_path: Path, fetcher: Fetcher) -> None:
    folder = make_sharded(tmp_path / "m")
    (folder / "model.safetensors.index.json").unlink()
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(PartsMissing, match="number 2 of 2"):
        open_local(folder, fetcher)
    alone = open_local(folder / "model-00001-of-00002.safetensors", fetcher)
    assert set(alone.tensors()) == {"a.weight"}
    assert "one of 2 files" in str(alone.notes[0])


def test_an_absurd_index_is_not_downloaded(
    tmp_path: Path, fetcher: Fetcher, make_mirror: Callable[..., MirrorServer]
) -> None:
    folder = make_sharded(tmp_path / "models/zoo/m")
    with (folder / "model.safetensors.index.json").open("r+b") as file:
        file.truncate(200_000_000)
    server = make_mirror(tmp_path / "models")
    with pytest.raises(BadIndex, match="larger than any"):
        open_checkpoint("zoo/m", fetcher)
    assert server.stats.body_bytes < 100_000


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path, fetcher: Fetcher) -> None:
    folder = make_sharded(tmp_path / "m")
    (folder / "model.safetensors.index.json").unlink()
    shutil.copy(
        folder / "model-00001-of-00002.safetensors", folder / "model-00002-of-00002.safetensors"
    )
    with pytest.raises(BadHeader, match="too"):
        open_local(folder, fetcher).tensors()


@pytest.mark.parametrize("indexed", [True, False])
def test_a_promise_that_a_shard_breaks_is_noted(
    indexed: bool, tmp_path: Path, fetcher: Fetcher
) -> None:
    shard, other = (f"model-0000{at}-of-00002.safetensors" for at in (1, 2))
    named = {"a.weight": shard, "ghost.weight": shard, "b.weight": other}
    folder = make_sharded(tmp_path / "m", weight_map=named)
    opened = open_checkpoint(str(folder), fetcher, indexed=indexed)
    assert set(opened.tensors()) == {"a.weight", "b.weight"}
    (note,) = opened.notes
    assert str(note).startswith(f"{shard} lacks 1 tensor that the index names: ghost.weight")
    assert "ghost.weight" in note.say("ko")
    if indexed:
        with pytest.raises(TensorMissing, match=r"ghost\.weight"):
            opened.tensors(["ghost.weight"])


def test_an_index_that_leaves_the_repository_is_refused(tmp_path: Path, fetcher: Fetcher) -> None:
    save_file({"a": np.ones(1, dtype=np.float32)}, tmp_path / "outside.safetensors")
    folder = make_sharded(tmp_path / "m", weight_map={"a": "../outside.safetensors"})
    with pytest.raises(BadIndex, match="climbs out"):
        open_local(folder, fetcher)


def test_a_single_file_comes_before_an_index_of_others(tmp_path: Path) -> None:
    save_file({"a": np.ones(3, dtype=np.float32)}, tmp_path / "model.safetensors")
    index = {"metadata": {}, "weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with Fetcher() as fetcher:
        opened = open_checkpoint(str(tmp_path), fetcher)
        assert opened.shards == ("model.safetensors",) and set(opened.tensors()) == {"a"}
        assert [note.key for note in opened.notes] == ["note.other-index"]


def test_a_bad_index_that_is_not_needed_is_noted(tmp_path: Path, fetcher: Fetcher) -> None:
    folder = make_sharded(tmp_path / "m")
    (folder / "model.safetensors.index.json").write_text("{}")
    opened = open_checkpoint(str(folder), fetcher, indexed=False)
    assert set(opened.tensors()) == {"a.weight", "b.weight"}
    assert "no weight_map" in str(opened.notes[0])


def test_tensors_that_the_index_does_not_name_are_noted(tmp_path: Path, fetcher: Fetcher) -> None:
    folder = make_sharded(tmp_path / "m")
    save_file(
        {"a.weight": np.ones(2, dtype=np.float32), "extra": np.ones(1, dtype=np.float32)},
        folder / "model-00001-of-00002.safetensors",
    )
    checkpoint = open_local(folder, fetcher)
    assert set(checkpoint.tensors()) == {"a.weight", "b.weight", "extra"}
    assert any("does not name: 1" in str(note) for note in checkpoint.notes)


Places = Callable[[Path], str]


@pytest.fixture(params=["hub", "local"])
def placed(request: pytest.FixtureRequest, make_mirror: Callable[..., MirrorServer]) -> Places:
    """Puts the model `zoo/m` below a folder where it can be opened: on a hub, or as it lies."""

    def place(models: Path) -> str:
        if request.param == "local":
            return str(models / "zoo/m")
        make_mirror(models)
        return "zoo/m"

    return place


@pytest.mark.parametrize("indexed", [True, False])
def test_a_shard_that_only_its_number_names_is_part_of_the_model(
    indexed: bool, tmp_path: Path, fetcher: Fetcher, placed: Places
) -> None:
    named = {"a.weight": "model-00001-of-00002.safetensors"}
    make_sharded(tmp_path / "models/zoo/m", weight_map=named)
    place = placed(tmp_path / "models")
    opened = open_checkpoint(place, fetcher, indexed=indexed)
    assert set(opened.tensors()) == set(opened.names()) == {"a.weight", "b.weight"}
    assert set(opened.tensors(["b.weight"])) == {"b.weight"}
    unknown = place == "zoo/m" and not indexed  # an index that is not fetched tells nothing
    assert [one.key for one in opened.notes] == ["note.files-beyond-index"] * (not unknown)


@pytest.mark.parametrize("indexed", [True, False])
def test_of_shards_that_are_not_all_there_the_index_says_which_are_the_model(
    indexed: bool, tmp_path: Path, fetcher: Fetcher, placed: Places
) -> None:
    named = {"a.weight": "model-00001-of-00003.safetensors"}
    folder = make_sharded(tmp_path / "models/zoo/m", weight_map=named)
    for at in (1, 2):
        shard = folder / f"model-0000{at}-of-00002.safetensors"
        shard.rename(folder / f"model-0000{at}-of-00003.safetensors")
    opened = open_checkpoint(placed(tmp_path / "models"), fetcher, indexed=indexed)
    assert set(opened.tensors()) == {"a.weight"}
    assert [one.key for one in opened.notes] == ["note.files-outside-index"]


SHARDS = {
    f"{name}.weight": f"model-0000{at}-of-00002.safetensors" for at, name in ((1, "a"), (2, "b"))
}
C = {"c.weight": np.ones(3, dtype=np.float32)}


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(
    ("path", "also"),
    [
        ("mtp.safetensors", None),
        ("extra/mtp.safetensors", None),
        ("mtp-00001-of-00001.safetensors", "mtp.safetensors.index.json"),
        ("consolidated-mtp.safetensors", None),
        ("vocab.safetensors", None),
    ],
)
def test_a_file_that_is_not_numbered_is_read_where_the_index_names_it(
    path: str, also: str | None, indexed: bool, tmp_path: Path, fetcher: Fetcher, placed: Places
) -> None:
    folder = make_sharded(tmp_path / "models/zoo/m", weight_map={**SHARDS, "c.weight": path})
    (folder / path).parent.mkdir(exist_ok=True)
    save_file(C, folder / path)
    if also is not None:
        (folder / also).write_text(json.dumps({"weight_map": {"c.weight": path}}))
    opened = open_checkpoint(placed(tmp_path / "models"), fetcher, indexed=indexed)
    assert opened.shards == tuple(sorted((*SHARDS.values(), path)))
    assert set(opened.tensors()) == set(opened.names()) == {"a.weight", "b.weight", "c.weight"}
    assert opened.notes == []


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(
    ("named", "there"),
    [
        ({**SHARDS, "c.weight": "mtp.safetensors"}, None),
        ({**SHARDS, "c.weight": "mtp.safetensors"}, "consolidated.safetensors"),
        ({"a.weight": "model-00009-of-00009.safetensors"}, None),
    ],
)
def test_complete_numbers_are_the_model_where_the_index_names_what_is_not_there(
    named: dict[str, str],
    there: str | None,
    indexed: bool,
    tmp_path: Path,
    fetcher: Fetcher,
    placed: Places,
) -> None:
    folder = make_sharded(tmp_path / "models/zoo/m", weight_map=named)
    if there is not None:
        save_file(C, folder / there)
    place = placed(tmp_path / "models")
    opened = open_checkpoint(place, fetcher, indexed=indexed)
    assert opened.shards == tuple(SHARDS.values())
    assert set(opened.tensors()) == set(opened.names()) == {"a.weight", "b.weight"}
    assert set(opened.tensors(["b.weight"])) == {"b.weight"}
    known = indexed or place != "zoo/m" or there == "consolidated.safetensors"
    (absent,) = set(named.values()) - set(SHARDS.values())
    said = [note for note in opened.notes if note.key == "note.files-absent"]
    assert [absent in str(note) and absent in note.say("ko") for note in said] == [True] * known
    assert opened.complete is not known  # what an absent file holds is not known


@pytest.mark.parametrize("indexed", [True, False])
def test_an_index_that_names_a_missing_shard_is_refused_where_numbers_are_missing_too(
    indexed: bool, tmp_path: Path, fetcher: Fetcher, placed: Places
) -> None:
    folder = make_sharded(tmp_path / "models/zoo/m")
    (folder / SHARDS["b.weight"]).unlink()
    with pytest.raises(PartsMissing, match="model-00002-of-00002"):
        open_checkpoint(placed(tmp_path / "models"), fetcher, indexed=indexed)


def _numbers(found: Mapping[str, TensorSpec]) -> dict[str, str]:
    return {name: spec.file[6:11] for name, spec in found.items()}


@pytest.mark.parametrize("indexed", [True, False])
def test_a_tensor_in_two_shards_is_taken_where_the_index_says(
    indexed: bool, tmp_path: Path, fetcher: Fetcher, placed: Places
) -> None:
    folder = make_sharded(tmp_path / "models/zoo/m")
    first, second = SHARDS.values()
    again = {"b.weight": np.ones(4, np.float32), "a.weight": np.zeros((2, 3), np.float32)}
    save_file(again, folder / second)
    place = placed(tmp_path / "models")
    opened = open_checkpoint(place, fetcher, indexed=indexed)
    both = {"a.weight": "00001", "b.weight": "00002"}
    assert _numbers(opened.tensors()) == both
    for asked in ((first, second), (second, first)):
        opened = open_checkpoint(place, fetcher, indexed=indexed)
        assert _numbers(opened.tensors_in(asked)) == both
    opened = open_checkpoint(place, fetcher, indexed=indexed)
    alone = {"b.weight": "00002"} if indexed else {"a.weight": "00002", "b.weight": "00002"}
    assert _numbers(opened.tensors_in([second])) == alone  # no index tells of the other file


def test_a_tensor_that_is_not_where_the_index_says_is_taken_where_it_is(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    first, second = SHARDS.values()
    folder = make_sharded(tmp_path / "m", weight_map={**SHARDS, "c.weight": first})
    save_file({"b.weight": np.ones(4, np.float32), **C}, folder / second)
    opened = open_local(folder, fetcher)
    assert _numbers(opened.tensors_in([second])) == {"b.weight": "00002", "c.weight": "00002"}


def test_shards_that_number_themselves_need_no_index(
    mirror: MirrorServer, fetcher: Fetcher
) -> None:
    mirror.stats.reset()
    assert len(open_checkpoint("zoo/base-b", fetcher, indexed=False).tensors()) == 56
    assert not any("index" in seen.path for seen in mirror.stats.last)


def in_shards(folder: Path, counts: Sequence[int]) -> list[str]:
    """Shards of so many tensors, and of enough bytes beside."""
    names = [f"model-{at:05}-of-{len(counts):05}.safetensors" for at in range(1, len(counts) + 1)]
    for at, (name, count) in enumerate(zip(names, counts, strict=True)):
        tensors = {f"t{at}.{row}": np.zeros(500, np.float32) for row in range(count)}
        save_file(tensors | {f"pad{at}": np.zeros(40_000, np.float32)}, folder / name)
    return names


def test_of_later_shards_as_much_is_read_as_headers_of_the_first_took(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    """Also where one has a longer header than all before it; a budget counts what was read."""
    names = in_shards(tmp_path, [60, 60, 60, 250])
    model = open_local(tmp_path, fetcher)
    everything = model.all_headers_bytes
    model.load_headers(names[:1])
    assert model.known_bytes * 4 == everything == 4 * fetcher.policy.first_read
    assert model.all_headers_bytes == everything  # one may be of an embedding alone
    model.load_headers(names[:2])
    assert model.all_headers_bytes < everything
    reads = [want.ranges[0].stop for want in model.header_wants()]
    assert len(reads) == 2 and fetcher.policy.first_slack < max(reads) < 16_000
    assert len(model.tensors()) == 3 * 60 + 250 + 4
    longest = model.header(names[3]).extent
    assert longest > max(reads) and model.known_bytes >= 2 * fetcher.policy.first_read + longest
    assert model.known_bytes == model.all_headers_bytes < everything


def test_a_shard_with_nothing_but_an_embedding_makes_the_others_cost_no_more_requests(
    tmp_path: Path, make_mirror: Callable[..., MirrorServer]
) -> None:
    (tmp_path / "made/short").mkdir(parents=True)
    names = in_shards(tmp_path / "made/short", [0, *[250] * 7])
    make_mirror(tmp_path)
    requests = []
    for first in (names, names[:1]):
        with Fetcher() as fetcher:
            model = open_checkpoint("made/short", fetcher)
            model.load_headers(first)
            model.load_headers(names)
            requests.append(fetcher.spent.requests)
    assert requests[0] == requests[1]


def test_after_a_long_header_others_are_expected_to_be_as_long(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    names = in_shards(tmp_path, [2500] * 4)
    model = open_local(tmp_path, fetcher)
    model.load_headers(names[:1])
    longest = model.header(names[0]).extent
    assert longest > fetcher.policy.first_read
    assert model.all_headers_bytes > 4 * longest


@pytest.mark.parametrize("words", [0, 250_000])
def test_what_finding_a_header_takes_is_known_of_formats_that_do_not_say_how_long_it_is(
    tmp_path: Path, make_mirror: Callable[..., MirrorServer], words: int
) -> None:
    (tmp_path / "made/one").mkdir(parents=True)
    spelled = b"".join(builder.text(f"token{at}") for at in range(words))
    tokens = builder.array(builder.STRING, words, spelled)
    file = builder.gguf(
        [builder.pair("tokens", builder.ARRAY, tokens)],
        [builder.tensor("w", [1 << 20])],
        b"\0" * (4 << 20),
    )
    (tmp_path / "made/one/model.gguf").write_bytes(file)
    server = make_mirror(tmp_path)
    with Fetcher() as fetcher:
        model = open_checkpoint("made/one", fetcher)
        before, server.stats.body_bytes = model.all_headers_bytes, 0
        model.load_headers(model.shards)
        assert model.known_bytes == server.stats.body_bytes
        assert before == 1 << 20 and (model.known_bytes > before) == bool(words)


def test_a_shard_that_is_asked_for_twice_is_read_once(tmp_path: Path, fetcher: Fetcher) -> None:
    first, second = in_shards(tmp_path, [1, 1])
    model = open_local(tmp_path, fetcher)
    assert len(model.tensors_in([first, first, second])) == 4


def test_asking_for_a_tensor_that_is_not_there(mirror: MirrorServer, fetcher: Fetcher) -> None:
    for name in ("zoo/base-a", "zoo/base-b"):
        with pytest.raises(TensorUnknown, match="nothing"):
            open_checkpoint(name, fetcher).tensors(["nothing"])


def test_a_single_file_and_a_file_in_a_repository(
    mirror: MirrorServer, fetcher: Fetcher, demo: Path
) -> None:
    file = "model-00002-of-00003.safetensors"
    local = open_checkpoint(str(demo / "zoo/base-b" / file), fetcher)
    remote = open_checkpoint(f"zoo/base-b/{file}", fetcher)
    assert set(local.tensors()) == set(remote.tensors())
    assert local.shards == remote.shards == (file,)
    with pytest.raises(FileMissing):
        open_checkpoint("zoo/base-b/nothing.safetensors", fetcher)


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ('{"hidden_size": ', True),
        ("[1]", True),
        ("[" * 100_000, True),
        ('\ufeff{"hidden_size": 128}', False),
        ('{"hidden_size": 128, "time_step_limit": [0.0, Infinity]}', False),
    ],
)
def test_a_broken_configuration_is_a_note(
    copy_of: Callable[[str], Path], fetcher: Fetcher, text: str, noted: bool
) -> None:
    folder = copy_of("zoo/base-a") / "zoo/base-a"
    (folder / "config.json").write_text(text, encoding="utf-8")
    checkpoint = open_local(folder, fetcher)
    assert len(checkpoint.tensors()) == 56
    assert any("config.json" in str(note) for note in checkpoint.notes) == noted
    assert checkpoint.config.get("hidden_size") == (None if noted else 128)


def test_the_verdict_of_sharding_is_none(tmp_path: Path, fetcher: Fetcher, demo: Path) -> None:
    """One file or three, one number: sharding must not change a single bit."""
    whole: dict[str, np.ndarray] = {}
    for file in sorted((demo / "zoo/base-b").glob("*.safetensors")):
        with safe_open(file, "numpy") as opened:
            whole |= {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    folder = tmp_path / "joined"
    folder.mkdir()
    save_file(whole, folder / "model.safetensors")
    one, three = open_local(folder, fetcher), open_local(demo / "zoo/base-b", fetcher)
    names = list(whole)
    specs_one, specs_three = one.tensors(names), three.tensors(names)
    for name in names:
        (x,) = one.read([Slice(specs_one[name])], as_stored=True)
        (y,) = three.read([Slice(specs_three[name])], as_stored=True)
        np.testing.assert_array_equal(bits(x), bits(y))


LONG = {"dots": "." * 20_000, "segments": "a." * 20_000 + "w", "characters": "a" * 1_025}


@pytest.mark.parametrize("name", LONG.values(), ids=LONG)
@pytest.mark.parametrize("where", ["header", "index"])
def test_names_that_no_model_has_are_refused(
    where: str, name: str, tmp_path: Path, fetcher: Fetcher
) -> None:
    file = "model-00001-of-00001.safetensors"
    save_file({name if where == "header" else "w": np.zeros(2, np.float32)}, tmp_path / file)
    if where == "index":
        index = {"weight_map": {name: file}}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(FormatError, match="damaged or hostile"):
        open_checkpoint(str(tmp_path), fetcher).tensors()


def test_names_at_the_bounds_are_read(tmp_path: Path, fetcher: Fetcher) -> None:
    names = [".".join("s" * 64), "w" * 1_024]
    save_file(dict.fromkeys(names, np.zeros(2, np.float32)), tmp_path / "model.safetensors")
    assert set(open_checkpoint(str(tmp_path), fetcher).tensors()) == set(names)
