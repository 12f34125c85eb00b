"""The site: it builds without a warning, its links lead somewhere, and its commands exist."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest

from kinprint.studies.reproduction.claims import claims

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if not path.name.endswith(".ko.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
# What a browser fetches by itself, by tag and attribute; a link to follow is none of these.
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("link", "href"),
}


class Page(HTMLParser):
    """What a built page names: anchors, links to follow, and what it fetches by itself."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.formulas = 0
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.formulas += tag == "math"
        for name, value in attrs:
            if not value:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if tag == "a" and name == "href":
                self.links.append(value)
            if (tag, name) in FETCHED:
                self.fetched.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it; a process of its own, for its warnings are not ours."""
    target = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(target)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def built(site: Path) -> dict[Path, Page]:
    """Pages that the site is made of; reports are pages of their own kind."""
    paths = [path for path in site.rglob("*.html") if "reports" not in path.parts]
    return {path: Page(path) for path in paths}


def test_every_page_is_built_in_both_languages(site: Path) -> None:
    for page in PAGES:
        assert (site / f"{page.stem}.html").is_file()
        assert (site / "ko" / f"{page.stem}.html").is_file()


def test_every_link_and_anchor_leads_somewhere(site: Path, built: dict[Path, Page]) -> None:
    broken = []
    for path, page in built.items():
        if path.name == "404.html":  # its links are written for the root of a server
            continue
        for link in [*page.links, *page.fetched]:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = built.get(target)
            if not target.exists() or (anchor and known and anchor not in known.anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_no_page_asks_the_network(site: Path, built: dict[Path, Page]) -> None:
    asked = [
        f"{path.relative_to(site)}: {link}"
        for path, page in built.items()
        for link in page.fetched
        if urlsplit(link).scheme not in ("", "data") or urlsplit(link).netloc
    ]
    for style in site.rglob("*.css"):
        text = style.read_text("utf-8")
        asked += [
            f"{style.name}: {one}" for one in re.findall(r"url\(\s*[\"']?(?:https?:)?//", text)
        ]
        asked += [f"{style.name}: {one}" for one in re.findall(r"@import[^;]*//[^;]*", text)]
    assert not asked


def test_formulas_are_mathml(built: dict[Path, Page]) -> None:
    for path, page in built.items():
        text = path.read_text("utf-8")
        assert "arithmatex" not in text, path
        assert not re.search(r"\\(?:frac|sum|Pr|le|cosh)\b", text), path
        if path.name == "methods.html":
            assert page.formulas > 50


def test_placeholders_are_filled(built: dict[Path, Page]) -> None:
    for path in built:
        text = path.read_text("utf-8")
        assert "{{" not in text, path
        assert not re.search(
            r"<!-- (?:menu|reports|notebook|claims|origin|picture \w+) -->", text
        ), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_korean_twin_has_the_same_bones(page: Path) -> None:
    english, korean = (path.read_text("utf-8") for path in (page, page.with_suffix(".ko.md")))
    bones = [_bones(text) for text in (english, korean)]
    assert bones[0] == bones[1]
    assert re.search(r"[가-힣]", korean)
    assert not re.search(r"[가-힣]", english)


def test_every_command_exists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "result.json").write_text("{}")
    seen, wrong = set[str](), []
    for page in sorted(DOCS.glob("*.md")):
        for line in _commands(page.read_text("utf-8")):
            words = shlex.split(line, comments=True)[1:]
            try:
                seen.add(_parse(words))
            except click.ClickException as error:
                wrong.append(f"{page.name}: {line}: {error.format_message()}")
    for claim in claims():
        try:
            seen.add(_parse(shlex.split(claim.command)[1:]))
        except click.ClickException as error:
            wrong.append(f"{claim.name}: {claim.command}: {error.format_message()}")
    assert not wrong
    assert {"compare", "report", "matrix", "study run", "reproduce", "mirror", "plan"} <= seen


def test_a_wrong_command_would_be_noticed() -> None:
    for line in ("compare A B --no-such-option", "conquer A B", "plan A --tensors", "study walk x"):
        with pytest.raises(click.ClickException):
            _parse(line.split())


def _bones(text: str) -> tuple[list[int], list[str], list[list[str]], int, int]:
    """Levels of headings, languages of code blocks, commands in them, tables and formulas."""
    blocks = FENCE.findall(text)
    prose = FENCE.sub("", text)
    return (
        [len(mark) for mark in HEADING.findall(prose)],
        [language for language, _ in blocks],
        [[line.split("#")[0].strip() for line in body.splitlines()] for lang, body in blocks
         if lang == "console"],
        len(re.findall(r"^\|", prose, re.MULTILINE)),
        prose.count("$$"),
    )  # fmt: skip


def _commands(text: str) -> Iterator[str]:
    """Lines of console blocks and inline code that call kinprint."""
    for language, body in FENCE.findall(text):
        if language == "console":
            yield from (line for line in body.splitlines() if line.startswith("kinprint "))
    yield from re.findall(r"`(kinprint [^`\n]+)`", FENCE.sub("", text))


def _parse(words: list[str]) -> str:
    """The command that words name, found to take them; nothing is run."""
    # The package offers a function of the same name as this module.
    command: click.Command = import_module("kinprint.cli.root").kinprint_command
    names: list[str] = []
    with click.Context(command) as context:
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            found = command.get_command(context, words[0])
            if found is None:
                raise click.UsageError(f"no command {words[0]!r}")
            command = found
            names.append(words.pop(0))
        if words:  # a bare name is a mention
            with contextlib.suppress(click.exceptions.Exit):  # --help
                command.make_context(" ".join(names), words, parent=context)
    return " ".join(names)
