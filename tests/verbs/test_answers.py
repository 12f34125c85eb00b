"""Answers that are kept: given again as they were, and only where asking anew could give no other.

The real client talks to a mirror. Whether an answer was worked out is told by `answered` and by
what the server was asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import huggingface_hub
import numpy as np
import pytest
from msgspec.structs import replace
from safetensors.numpy import save_file

import kinprint
import kinprint.verbs.answers
from kinprint.device import Device
from kinprint.lineage.opening import open_all
from kinprint.lineage.results import Settings
from kinprint.mirror import Fault, MirrorServer
from kinprint.reader.cache import Cache
from kinprint.reader.fetch import Fetcher
from kinprint.report.views.html.pair import pair_page
from kinprint.verbs.answers import Answers, Question
from tests.fewer_layers import short_zoo

BASE, CHILD = "zoo/base-a", "zoo/a-cpt"
Mirror = Callable[..., MirrorServer]


def asked(a: str = BASE, b: str = CHILD, **how: object) -> kinprint.Comparison:
    """A short comparison."""
    return kinprint.compare(a, b, **{"level": "quick", **how})  # type: ignore[arg-type]


def told(found: kinprint.Comparison) -> dict[str, object]:
    """All that a result says, but for what it cost."""
    return {name: part for name, part in found.to_dict().items() if name != "read"}


def write_adapter(folder: Path) -> None:
    """An adapter of a model on the Hub."""
    chance = np.random.default_rng(0)
    root = "base_model.model.model.layers.0.self_attn.q_proj.lora_{}.weight"
    shapes = {root.format("A"): (2, 128), root.format("B"): (128, 2)}
    tensors = {name: chance.normal(0, 0.02, one).astype("f4") for name, one in shapes.items()}
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    told = {**config, "base_model_name_or_path": BASE}
    (folder / "adapter_config.json").write_text(json.dumps(told))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two demo models, the second with a card."""
    for name in (BASE, CHILD):
        shutil.copytree(short_zoo().parent / name, tmp_path / "models" / name)
    (tmp_path / "models" / CHILD / "README.md").write_text("---\nbase_model: zoo/base-a\n---\n")
    return tmp_path / "models"


@pytest.mark.parametrize("level", ["quick", "standard"])
def test_an_answer_is_given_again_as_it_was(mirror: MirrorServer, level: str) -> None:
    first = asked(level=level)
    assert not first.answered and first.changes is not None
    mirror.stats.reset()
    again = asked(level=level)
    assert told(again) == told(first)
    assert again.answered == datetime.now(UTC).date().isoformat()
    # Two lists of files were asked for and nothing else: the state of both models.
    assert again.cost.requests == mirror.stats.count() == 2
    assert [seen.port for seen in mirror.stats.last] == ["hub", "hub"]


def test_it_says_that_it_was_kept_wherever_it_says_what_it_cost(
    mirror: MirrorServer, tmp_path: Path
) -> None:
    asked()
    again = asked()
    again.save(tmp_path / "page.html", tmp_path / "page.md")
    for name in ("page.html", "page.md"):
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert "found on" in written and again.answered in written
    assert "found on" in again._repr_html_()


@pytest.mark.parametrize(
    "how",
    [
        {"seed": 1},
        {"level": "standard"},
        {"alpha": 0.01},
        {"a": CHILD, "b": BASE},
        {"a": f"{BASE}@main"},
        {"cache": False},
        {"budget": "64MB"},
        {"direction": True},
        {"controls": ["zoo/base-b"]},
        {"given": "zoo/base-b"},
    ],
)
def test_who_asks_for_something_else_gets_an_answer_of_its_own(
    mirror: MirrorServer, how: dict[str, object]
) -> None:
    asked()
    assert not asked(**how).answered  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "how", [{"cache": False}, {"budget": "64MB"}, {"direction": True}, {"controls": ["zoo/base-b"]}]
)
def test_what_is_worked_out_each_time_is_not_kept(
    mirror: MirrorServer, how: dict[str, object]
) -> None:
    asked(**how)  # type: ignore[arg-type]
    assert kinprint.cached().answers == 0


def test_a_change_of_a_model_is_seen(make_mirror: Mirror, models: Path) -> None:
    make_mirror(models, refresh_seconds=0.0)
    first = asked()
    assert asked().answered
    (models / CHILD / "README.md").write_text("---\nbase_model: zoo/base-b\n---\n")
    now = asked()
    assert not now.answered
    assert [one.model for one in first.models[1].claims] == ["zoo/base-a"]
    assert [one.model for one in now.models[1].claims] == ["zoo/base-b"]


def test_a_file_in_the_cache_of_the_hub_is_pinned_as_it_lies(mirror: MirrorServer) -> None:
    place = Path(huggingface_hub.hf_hub_download(CHILD, "config.json"))
    first = asked()
    assert asked().answered
    place.resolve().write_text(place.read_text().replace("kinprint-zoo", "kinprint-zzz"))
    again = asked()
    assert not again.answered and told(again)["verdict"] == told(first)["verdict"]


def test_a_reader_that_has_read_before_answers_anew(mirror: MirrorServer) -> None:
    """What is left of its budget, and what its costs count, depend on that."""
    asked()
    with kinprint.Reader() as reader:
        assert asked(reader=reader).answered
        assert not asked(reader=reader).answered
    with kinprint.Reader() as reader:
        kinprint.inspect(CHILD, reader=reader)
        assert not asked(seed=5, reader=reader).answered
    assert kinprint.cached().answers == 1


def test_other_code_finds_its_own_answers(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked()
    monkeypatch.setattr(kinprint.verbs.answers, "_CODE", ("other",))
    assert not asked().answered
    # What is on disk is not what answered: nobody may take the answer for that of the new code.
    assert kinprint.cached().answers == 1


def test_every_file_of_the_package_counts_as_code(tmp_path: Path) -> None:
    def files() -> list[bytes]:
        return list(kinprint.verbs.answers._files(os.fsencode(tmp_path)))

    (tmp_path / "room").mkdir()
    rule = tmp_path / "room/rule.toml"
    rule.write_text("limit = 1")
    before = files()
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/rule.pyc").write_text("compiled")
    assert files() == before
    times = rule.stat().st_atime_ns, rule.stat().st_mtime_ns
    rule.write_text("limit = 2")
    os.utime(rule, ns=times)  # as tools do that build the same archive each time
    assert files() != before
    (tmp_path / ".#rule.toml").symlink_to("nowhere")  # as editors lock files
    assert len(files()) == len(before) + 1


def test_code_behind_links_counts_as_it_is_there(tmp_path: Path) -> None:
    def files() -> list[bytes]:
        return list(kinprint.verbs.answers._files(os.fsencode(tmp_path / "package")))

    (tmp_path / "package").mkdir()
    (tmp_path / "elsewhere").mkdir()
    rules = [tmp_path / "rule.py", tmp_path / "elsewhere/other.py"]
    for rule in rules:
        rule.write_text("limit = 1")
    (tmp_path / "package/rule.py").symlink_to(rules[0])
    (tmp_path / "package/room").symlink_to(tmp_path / "elsewhere")
    for rule in rules:
        before = files()
        rule.write_text("limit = 22")
        assert files() != before


def test_what_was_installed_meanwhile_keeps_no_answer(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "numpy-99.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not asked().answered and kinprint.cached().answers == 0


def test_where_the_code_cannot_be_told_nothing_is_kept(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinprint.verbs.answers, "_CODE", ())
    assert not asked().answered and kinprint.cached().answers == 0


def test_who_answers_is_part_of_a_question(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Fetcher() as fetcher:
        models = open_all([BASE, CHILD], fetcher, Settings())

        def key(device: Device = Device.CPU, hashes: bool = True) -> str:
            question = Question.of(models, Settings(), device, hashes=hashes, details=True)
            assert question is not None
            return question.key

        first = key()
        assert key(Device.GPU) != first == key()
        assert key(hashes=False) != first
        monkeypatch.setattr(kinprint.verbs.answers, "_CODE", ("other",))
        assert key() != first


def test_a_base_that_nothing_stands_on_is_refused_whatever_is_kept(mirror: MirrorServer) -> None:
    asked()
    with pytest.raises(kinprint.BadOption, match="base"):
        asked(base="zoo/base-b")


def test_where_another_package_adds_something_nothing_is_kept(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked()
    monkeypatch.setattr(kinprint.verbs.answers, "entry_points", lambda group: ("something",))
    assert not asked().answered and kinprint.cached().answers == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:-1],
        lambda raw: raw[:40] + bytes([raw[40] ^ 1]) + raw[41:],
    ],
    ids=["empty", "cut", "changed"],
)
def test_a_damaged_answer_is_none(mirror: MirrorServer, damage: Callable[[bytes], bytes]) -> None:
    first = asked()
    [place] = Answers.default().folder.iterdir()
    place.write_bytes(damage(place.read_bytes()))
    mended = asked()
    assert not mended.answered and told(mended) == told(first)
    assert asked().answered


def test_an_answer_under_the_key_of_another_is_none(mirror: MirrorServer) -> None:
    """As folders that are put together may have it."""
    asked(seed=1)
    [place] = Answers.default().folder.iterdir()
    answer = place.read_bytes()
    kinprint.clear_cache()
    first = asked()
    [place] = Answers.default().folder.iterdir()
    place.write_bytes(answer)
    again = asked()
    assert not again.answered and told(again) == told(first)


def test_the_oldest_answers_go(mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinprint.verbs.answers, "_MOST", 2)
    for seed in range(3):
        asked(seed=seed)
    assert kinprint.cached().answers == 2
    assert asked(seed=2).answered and asked(seed=1).answered
    assert not asked(seed=0).answered


def test_what_cannot_be_removed_keeps_no_other_answer(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinprint.verbs.answers, "_MOST", 2)
    folder = Answers.default().folder
    (folder / "a folder").mkdir(parents=True)
    os.utime(folder / "a folder", ns=(0, 0))
    for seed in range(3):
        asked(seed=seed)
    assert len(list(folder.iterdir())) == 3 and not asked(seed=0).answered


def test_clearing_does_not_mind_who_writes(mirror: MirrorServer) -> None:
    found = asked()
    answers = Answers.default()
    [name] = [place.name for place in answers.folder.iterdir()]
    data = (answers.folder / name).read_bytes()
    stop = Event()

    def write() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                answers.folder.mkdir(parents=True, exist_ok=True)
                (answers.folder / name).write_bytes(data)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write) for _ in range(2)]
        try:
            for _ in range(40):
                answers.clear()
        finally:
            stop.set()
        for writer in writers:
            writer.result()
    assert told(asked()) == told(found)


def test_a_page_says_on_which_day_the_answer_was_found(mirror: MirrorServer) -> None:
    asked()
    again = asked()
    read = replace(again.document.read, date="2026-03-02", answered="2026-01-05")
    page = pair_page(replace(again.document, read=read))
    assert "2026-01-05" in page and "2026-03-02" not in page


def test_numbers_of_numpy_ask_the_same(mirror: MirrorServer) -> None:
    asked(seed=1, details=True)
    assert asked(seed=np.int64(1), details=np.True_).answered


def test_a_comparison_does_not_fail_because_its_answer_cannot_be_kept(mirror: MirrorServer) -> None:
    folder = Answers.default().folder
    folder.parent.mkdir(parents=True)
    folder.write_text("no folder")
    assert asked().relation is kinprint.Relation.PARTIAL
    with pytest.raises(kinprint.CacheBroken):
        kinprint.clear_cache()
    assert not list(Cache.default().items()), "bytes are cleared in any case"


def test_a_draft_is_no_answer(mirror: MirrorServer) -> None:
    """Of a process that died while it wrote."""
    asked()
    [place] = Answers.default().folder.iterdir()
    place.with_name(f"{place.name}.0123456789abcdef").write_bytes(b"half")
    assert kinprint.cached().answers == 1
    kinprint.clear_cache()
    assert not Answers.default().folder.exists()


def test_details_are_there_if_they_were_asked_for(mirror: MirrorServer) -> None:
    brief = asked(details=False)
    assert asked(details=False).answered and brief.shared is None
    whole = asked()
    assert not whole.answered and whole.shared is not None
    assert told(asked(details=False)) == told(brief) and told(asked()) == told(whole)
    assert kinprint.cached().answers == 2


@pytest.mark.parametrize("lost", ["*/README.md", "*/commits/*"])
def test_an_answer_that_lacks_something_is_not_kept(
    make_mirror: Mirror, models: Path, lost: str
) -> None:
    make_mirror(models, faults=[Fault("status", where=lost, code=500)])
    assert not asked().models[1].claims or not asked().models[1].changed
    assert kinprint.cached().answers == 0
    make_mirror(models)
    asked()
    assert kinprint.cached().answers == 1


def test_an_answer_without_dates_is_not_kept(
    mirror: MirrorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline nobody tells when a commit was made; what is kept is given there too."""
    asked()
    kinprint.verbs.answers.Answers.default().clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert not asked().answered and kinprint.cached().answers == 0
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    online = asked()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert asked().answered and told(asked()) == told(online)


def test_models_that_nothing_pins_are_compared_each_time(demo: Path, mirror: MirrorServer) -> None:
    for _ in range(2):
        assert not asked(str(demo / BASE), CHILD).answered
        assert not asked(str(demo / BASE), str(demo / CHILD)).answered
    assert kinprint.cached().answers == 0


def test_an_adapter_is_compared_each_time(make_mirror: Mirror, models: Path) -> None:
    """Its base is a third model, of which the commits of the two say nothing."""
    write_adapter(models / "zoo/adapter")
    make_mirror(models)
    for _ in range(2):
        assert not asked("zoo/adapter", CHILD).answered
    assert kinprint.cached().answers == 0


def test_a_pipeline_with_an_adapter_is_compared_each_time(
    make_mirror: Mirror, models: Path
) -> None:
    """The base of a component is a third model too."""
    for name in ("base-a", "a-cpt"):
        folder = models / f"zoo/pipe-{name}"
        shutil.copytree(models / "zoo" / name, folder / "transformer")
        index = {"_class_name": "P", "transformer": ["t", "T"], "text_encoder": ["t", "T"]}
        (folder / "model_index.json").write_text(json.dumps(index))
        write_adapter(folder / "text_encoder")
    make_mirror(models)
    for _ in range(2):
        assert not asked("zoo/pipe-base-a", "zoo/pipe-a-cpt").answered
    assert kinprint.cached().answers == 0


def test_equal_files_are_told_again_too(make_mirror: Mirror, models: Path) -> None:
    shutil.copytree(models / BASE, models / "zoo/copy")
    make_mirror(models)
    first, again = asked(BASE, "zoo/copy"), asked(BASE, "zoo/copy")
    assert first.relation is again.relation is kinprint.Relation.IDENTICAL
    assert again.answered and told(again) == told(first)


def test_answers_are_counted_and_forgotten_with_the_cache(mirror: MirrorServer) -> None:
    asked()
    asked(seed=1)
    contents = kinprint.cached()
    assert contents.answers == 2 and contents.answers_bytes > 1000
    assert kinprint.clear_cache() >= contents.answers_bytes
    assert kinprint.cached().answers == 0 and not asked().answered
