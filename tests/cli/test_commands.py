"""The command line as people use it: real exit codes, of real processes or of commands here."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from kinprint.mirror import Fault, MirrorServer
from kinprint.replica import build_replicas

Environment = Callable[..., dict[str, str]]


def listen_to_interrupts() -> None:
    """A background job ignores SIGINT, and so would the processes it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def server(demo: Path) -> Iterator[MirrorServer]:
    with MirrorServer(demo) as running:
        yield running


@pytest.fixture
def kinprint(
    hub_environment: Environment, server: MirrorServer, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kinprint", *arguments],
            env=hub_environment(server.endpoint, **more),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(in_process: Callable[[str], Run], server: MirrorServer) -> Run:
    return in_process(server.endpoint)


def test_help_and_version(here: Run) -> None:
    shown = here("--help")
    assert shown.returncode == 0
    for command in ("inspect", "plan", "compare", "matrix", "report", "demo", "mirror", "cache"):
        assert re.search(rf"^  {command}\b", shown.stdout, re.MULTILINE)
        assert here(command, "--help").returncode == 0
    assert here("--version").stdout.startswith("kinprint")


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "kinprint", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_help_imports_nothing_heavy() -> None:
    imported = imported_by("--help")
    assert "click" in imported
    heavy = {"numpy", "scipy", "huggingface_hub", "matplotlib", "rich", "ml_dtypes", "msgspec"}
    assert heavy & imported == set()


def test_comparing_two_plain_models_imports_nothing_that_others_need(demo: Path) -> None:
    imported = imported_by("compare", str(demo / "zoo/base-a"), str(demo / "zoo/a-cpt"))
    assert "kinprint.lineage.compare" in imported
    others = {"numpy.ma", "tomllib", "scipy", "rich", "kinprint.diff.compare"}
    others |= {f"kinprint.lineage.{name}" for name in ("contents", "controls", "sharing.map")}
    others |= {f"kinprint.model.{name}" for name in ("adapters", "adapted", "tokens.likeness")}
    others |= {"kinprint.model.tokens.gguf_vocabulary", "kinprint.measure.spectra"}
    assert others & imported == set()


def test_inspect_json_is_one_true_object_a_line(here: Run, demo: Path) -> None:
    done = here("inspect", "--format", "json", "zoo/base-a", str(demo / "zoo/base-b"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["schema"] for line in lines] == ["kinprint.inspect/1"] * 2
    assert [line["model"] for line in lines] == ["zoo/base-a", str(demo / "zoo/base-b")]
    for line, name in zip(lines, ("zoo/base-a", "zoo/base-b"), strict=True):
        for tensor in line["tensors"]:
            file = demo / name / tensor["file"]
            with safe_open(file, "numpy") as opened:
                part = opened.get_slice(tensor["name"])
                assert part.get_shape() == tensor["shape"]
                assert part.get_dtype() == tensor["dtype"]
                whole = opened.get_tensor(tensor["name"]).tobytes()
            with file.open("rb") as raw:
                raw.seek(tensor["offset"])
                assert raw.read(tensor["nbytes"]) == whole
        assert line["geometry"]["layers"] == 6
        assert line["geometry"]["hidden"] == 128


@pytest.mark.parametrize("kind", ["hang", "drip", "continue"])
def test_a_server_that_never_answers_is_given_up(
    kinprint: Run, server: MirrorServer, kind: str
) -> None:
    """Whatever the hub client asks for on its own is not waited for either."""
    server.faults.add(Fault(kind))
    done = kinprint("inspect", "zoo/base-a", HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert done.returncode == 2 and "no answer in time" in done.stderr
    assert {seen.path.split("/")[2] for seen in server.stats.last} == {"models"}


def test_inspect_reads_headers_only(here: Run, server: MirrorServer) -> None:
    done = here("inspect", "--format", "json", "zoo/base-b")
    spent = json.loads(done.stdout)["read"]
    assert spent["requests"] == server.stats.count()
    assert server.stats.storage_body_bytes < 100_000


def test_a_second_run_reads_nothing_again(kinprint: Run, server: MirrorServer) -> None:
    kinprint("inspect", "zoo/base-b")
    server.stats.reset()
    again = kinprint("inspect", "--format", "json", "zoo/base-b")
    assert again.returncode == 0
    assert server.stats.count("storage") == 0
    assert json.loads(again.stdout)["read"]["requests"] == 1  # which commit is it now?
    offline = kinprint("inspect", "--format", "json", "zoo/base-b", HF_HUB_OFFLINE="1")
    assert offline.returncode == 0, offline.stderr
    found = json.loads(offline.stdout)
    assert found["read"]["requests"] == 0
    assert found["tensors"] == json.loads(again.stdout)["tensors"]


def test_inspect_for_people(here: Run) -> None:
    done = here("inspect", "zoo/base-b")
    assert done.returncode == 0
    assert "LlamaForCausalLM" in done.stdout
    assert "model.layers.*.mlp.down_proj.weight" in done.stdout
    assert "3 files" in done.stdout
    assert "\x1b[" not in done.stdout


def test_one_bad_model_does_not_hide_the_good_ones(here: Run) -> None:
    done = here("inspect", "--format", "json", "zoo/nothing", "zoo/base-a")
    assert done.returncode == 2
    assert [json.loads(line)["model"] for line in done.stdout.splitlines()] == ["zoo/base-a"]
    assert done.stderr.startswith("kinprint: There is no model 'zoo/nothing'")
    assert done.stderr.count("\n") == 1


def test_errors_are_sentences_in_the_users_language(kinprint: Run) -> None:
    english = kinprint("inspect", "./nowhere")
    korean = kinprint("inspect", "./nowhere", LANG="ko_KR.UTF-8")
    assert english.returncode == korean.returncode == 2
    assert "does not name a model" in english.stderr
    assert "모델 이름이 아닙니다" in korean.stderr
    assert "Traceback" not in english.stderr + korean.stderr


def test_a_lasting_fault_is_a_sentence(here: Run, server: MirrorServer) -> None:
    server.faults.replace([Fault("ignore_range", port="storage")])
    done = here("inspect", "zoo/base-a")
    assert done.returncode == 2
    assert "ignores Range" in done.stderr
    assert "Traceback" not in done.stderr


def test_plan_and_dry_run_cost_no_weights(here: Run, server: MirrorServer) -> None:
    dry = here("inspect", "--dry-run", "zoo/base-b")
    assert dry.returncode == 0
    assert re.search(r"kB in 6 requests for the headers of 3 files", dry.stdout)
    assert server.stats.count("storage") == 0
    done = here("plan", "zoo/base-b", "--tensors", "*down_proj*", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["schema"] == "kinprint.plan/1"
    assert found["tensors"] == 6
    assert found["bytes"] >= 6 * 128 * 352 * 2 - 3 * 9 * 1024
    text = here("plan", "zoo/base-b", "--tensors", "*down_proj*")
    assert "6 tensors" in text.stdout
    nothing = here("plan", "zoo/base-b", "--tensors", "*nothing*")
    assert nothing.returncode == 2
    assert "--tensors" in nothing.stderr


@pytest.mark.parametrize("budget", ["1kB", "abc", "-1", "64XB", ""])
def test_budgets(here: Run, budget: str) -> None:
    done = here("inspect", "zoo/base-a", "--budget", budget)
    assert done.returncode == 2
    assert "--budget" in done.stderr


def test_a_budget_that_suffices(kinprint: Run) -> None:
    assert kinprint("inspect", "zoo/base-a", "--budget", "64MB").returncode == 0


def test_the_cache_is_shown_and_cleared(here: Run) -> None:
    assert "0 B" in here("cache").stdout
    here("inspect", "zoo/base-a")
    shown = here("cache").stdout
    assert "zoo/base-a" in shown
    assert "kinprint" in shown.splitlines()[-1]
    assert "freed" in here("cache", "clear").stdout
    assert "zoo/base-a" not in here("cache").stdout


def test_no_cache_leaves_no_trace_of_weights(here: Run) -> None:
    assert here("inspect", "zoo/base-a", "--no-cache").returncode == 0
    assert "0 B" in here("cache").stdout


def test_nothing_is_printed_onto_the_progress_line(
    hub_environment: Environment, server: MirrorServer
) -> None:
    """In a terminal, the bar is gone before a result or an error is printed."""
    server.latency = 0.05
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kinprint", "inspect", "zoo/base-a", "zoo/nothing"],
        env=hub_environment(server.endpoint, TERM="xterm", COLUMNS="100"),
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):
        while chunk := os.read(main, 65536):
            shown += chunk
    os.close(main)
    process.wait()
    assert b"reading" in shown
    screen = screen_after(shown.decode())
    assert any(line.startswith("zoo/base-a at ") for line in screen)
    assert any(line.startswith("kinprint: There is no model") for line in screen)
    assert not any("reading" in line for line in screen)


def screen_after(text: str) -> list[str]:
    """What a terminal shows after carriage returns, cursor moves up and erased lines."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        if part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif part == "\r":
            column = 0
        elif part.startswith("\x1b"):
            if part.endswith("K"):
                lines[row] = "" if part == "\x1b[2K" else lines[row][:column]
            elif part.endswith("A"):
                row = max(0, row - int(part[2:-1] or 1))
        else:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + part + line[column + len(part) :]
            column += len(part)
    return lines


def test_the_reader_of_our_output_may_leave(
    hub_environment: Environment, server: MirrorServer
) -> None:
    shell = f"{sys.executable} -m kinprint inspect zoo/base-a zoo/base-b zoo/a-cpt | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        env=hub_environment(server.endpoint),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_ENDPOINT", "localhost"),
        ("HF_ENDPOINT", "http://host:abc"),
        ("HF_HUB_DOWNLOAD_TIMEOUT", "soon"),
        ("HF_TOKEN", "비밀"),
    ],
)
def test_odd_variables_are_named(kinprint: Run, name: str, value: str) -> None:
    done = kinprint("inspect", "zoo/base-a", **{name: value})
    assert done.returncode == 2
    assert done.stderr.startswith(f"kinprint: {name}")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_an_interrupt_ends_the_command_at_once(
    hub_environment: Environment, server: MirrorServer
) -> None:
    server.faults.replace([Fault("slow", rate=1, port="storage")])  # hours
    process = subprocess.Popen(
        [sys.executable, "-m", "kinprint", "inspect", "zoo/base-a", "zoo/base-b"],
        env=hub_environment(server.endpoint, HF_HUB_DOWNLOAD_TIMEOUT="3600"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=listen_to_interrupts,
    )
    while server.stats.count("storage") == 0:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert said.strip() == b"Stopped. What was read so far is kept."


def test_an_interrupt_ends_all_processes_of_a_command(
    hub_environment: Environment, server: MirrorServer, demo: Path, tmp_path: Path
) -> None:
    """As a terminal sends it, to all of them. Whoever stayed would keep the pipe open."""
    server.faults.replace([Fault("slow", rate=1, port="storage")])
    process = subprocess.Popen(
        [sys.executable, "-m", "kinprint", "atlas", "build", "zoo/base-a", "zoo/base-b",
         "zoo/a-cpt", "--atlas", str(tmp_path / "atlas"), "--jobs", "2"],
        env=hub_environment(server.endpoint, HF_HUB_DOWNLOAD_TIMEOUT="3600"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=listen_to_interrupts,
    )  # fmt: skip
    while server.stats.count("storage") == 0:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert said.strip().endswith(b"Stopped. What was read so far is kept.")


def test_hostile_names_cannot_write_on_the_terminal(here: Run, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    folder.mkdir()
    name = "evil\x1b[31m\u202e\n[bold]x"
    save_file({name: np.zeros(2, dtype=np.float32)}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "a\nb", "n_layer": 2}))
    done = here("inspect", str(folder))
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "[bold]x" in done.stdout
    assert (
        json.loads(here("inspect", "--format", "json", str(folder)).stdout)["tensors"][0]["name"]
        == name
    )
    missing = here("inspect", str(folder) + "\x1b[31m\nx")
    assert missing.returncode == 2
    assert missing.stderr.count("\n") == 1
    assert "\x1b" not in missing.stderr


def test_names_that_are_no_text_survive_json(here: Run, tmp_path: Path, demo: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    odd = folder / os.fsdecode(b"m\xff.safetensors")
    odd.write_bytes((demo / "zoo/base-a/model.safetensors").read_bytes())
    done = here("inspect", "--format", "json", str(folder))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"][0]["path"] == odd.name


@pytest.mark.parametrize("redirect", [">&-", "> /dev/full"])
def test_nowhere_to_write_to(hub_environment: Environment, demo: Path, redirect: str) -> None:
    shell = f"{sys.executable} -m kinprint inspect --format json {demo / 'zoo/base-a'} {redirect}"
    done = subprocess.run(
        ["bash", "-c", shell],
        env=hub_environment("https://huggingface.co"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == (0 if redirect == ">&-" else 2)


def test_the_failing_model_is_named(here: Run, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"\xff" * 20)
    done = here("inspect", "zoo/base-a", str(tmp_path / "broken"))
    assert done.returncode == 2
    assert str(tmp_path / "broken") in done.stderr
    assert "LlamaForCausalLM" in done.stdout
    done = here("compare", str(tmp_path / "broken"), "zoo/base-a")
    assert done.returncode == 2
    assert done.stderr.startswith(f"kinprint: {tmp_path / 'broken'}: 'model.safetensors' ")


def test_a_name_that_is_no_folder_is_told_where_the_hub_cannot_be_reached(kinprint: Run) -> None:
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_DOWNLOAD_TIMEOUT": "1"}
    done = kinprint("compare", "basea", "zoo/base-a", **nowhere)
    assert done.returncode == 2 and "No connection to 127.0.0.1:9" in done.stderr
    assert "the name 'basea': there is no folder of that name here" in done.stderr
    done = kinprint("inspect", "hf://org/basea", **nowhere)
    assert done.returncode == 2 and "no folder" not in done.stderr


def test_a_replica_says_that_it_is_one(here: Run, tmp_path: Path) -> None:
    (folder,) = build_replicas(tmp_path, ["01-ai/Yi-1.5-6B-Chat"])
    shown = here("inspect", str(folder))
    assert "NOT the real model" in shown.stdout
    found = json.loads(here("inspect", "--format", "json", str(folder)).stdout)
    assert any("NOT the real model" in label for label in found["labels"])


def test_python_minus_m_and_unknown_commands(kinprint: Run) -> None:
    done = kinprint("frobnicate")
    assert done.returncode == 2
    assert "frobnicate" in done.stderr
    assert kinprint("inspect").returncode == 2
