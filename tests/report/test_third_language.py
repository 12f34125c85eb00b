"""A third language is one file: a catalogue beside the others, and every view speaks it.

The language is English with other vowels: what does not come from its catalogue is seen.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po, write_po

from kinprint import text
from kinprint.text.catalogue import FIRST, FOLDER, template

CODE = "eo"
VOWELS = str.maketrans("aeiouAEIOU", "äëïöüÄËÏÖÜ")
KEPT = re.compile(r"(\{[^}]*\}|<[^>]*>)")  # fields and markup
SPEAKING = """
import sys
from pathlib import Path
from kinprint.text import catalogue

folder, out, code = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
catalogue.FOLDER = folder

import kinprint, kinprint.demo
from kinprint.report.schema import settled
from kinprint.report.views.terminal.comparison import comparison_lines, matrix_lines
from kinprint.report.views.terminal.study import study_lines

assert catalogue.languages() == ("en", code, "ko")
zoo = kinprint.demo.FOLDER / "zoo"
a, b = zoo / "base-a", zoo / "base-b"
pair = kinprint.compare(a, b, level="quick", language=code)
pair.save(*(out / f"pair{end}" for end in (".html", ".md", ".json")), out / "pair")
many = kinprint.matrix([a, zoo / "a-cpt", zoo / "gone"], level="quick", language=code)
many.save(*(out / f"many{end}" for end in (".html", ".md", ".csv")))
study = kinprint.study("repository", a, b, language=code)
study.save(out / "study")
for name, drawn, lines in (
    ("pair", pair, comparison_lines), ("many", many, matrix_lines), ("study", study, study_lines)
):
    shown = "\\n".join(line.text for line in lines(settled(drawn.document), code))
    (out / f"{name}.txt").write_text(shown, "utf-8")
    (out / f"{name}.notebook").write_text(drawn._repr_html_(), "utf-8")
"""


def other_vowels(said: str) -> str:
    return "".join(
        part if KEPT.fullmatch(part) else part.translate(VOWELS) for part in KEPT.split(said)
    )


def catalogues(folder: Path) -> Path:
    """All catalogues and one more, which is English with other vowels."""
    shutil.copytree(FOLDER, folder)
    with (FOLDER / f"{FIRST}.po").open("rb") as file:
        found = read_po(file, locale=FIRST)
    found.locale = CODE
    for one in found:
        if one.id:
            one.string = (
                tuple(map(other_vowels, one.string))
                if isinstance(one.string, tuple | list)
                else other_vowels(one.string or "")
            )
    with (folder / f"{CODE}.po").open("wb") as file:
        write_po(file, found, width=0)
    return folder


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what every view says in the third language."""
    out = tmp_path_factory.mktemp("spoken")
    done = subprocess.run(
        [sys.executable, "-c", SPEAKING, catalogues(out / "catalogues"), out, CODE],
        env={**os.environ, "KINPRINT_LANG": CODE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


def english() -> set[str]:
    """What English sentences say between their fields, three words and more."""
    pieces = (
        piece
        for key in text.known_keys()
        for piece, _, _, _ in Formatter().parse(template(key, FIRST))
    )
    said = (" ".join(re.sub("<[^>]*>", "", piece).split()) for piece in pieces)
    return {one for one in said if len(re.findall(r"[A-Za-z]{2,}", one)) >= 3}


def side(page: str) -> str:
    """What a page shows in the language."""
    start = page.index(f'id="{CODE}" lang="{CODE}"')
    following = re.search(r'<div class="side[^"]*" id="', page[start:])
    return page[start : start + following.start()] if following else page[start:]


def visible(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", markup))


FILES = (
    "pair.html", "pair.md", "pair.txt", "pair.notebook", "many.html", "many.md", "many.txt",
    "many.notebook", f"study/README.{CODE}.md", "study.txt", "study.notebook",
)  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_every_view_speaks_it(spoken: Path, name: str) -> None:
    shown = (spoken / name).read_text("utf-8")
    if name.endswith(".html"):
        shown = side(shown)
    if name.endswith((".html", ".notebook")):
        shown = visible(shown)
    shown = " ".join(shown.split())
    assert re.search("[äëïöü]", shown)
    assert not re.search("[가-힣]", shown.replace("한국어", ""))
    assert {one for one in english() if one in shown} == set()


def test_pages_lead_to_it_and_sheets_have_a_column_for_it(spoken: Path) -> None:
    page = (spoken / "pair.html").read_text("utf-8")
    for one in ("en", CODE, "ko"):
        assert f'href="#{one}"' in page
    assert f'data-asked="{CODE}"' in page
    readme = (spoken / "study/README.md").read_text("utf-8")
    assert f"](README.{CODE}.md)" in readme and "](README.ko.md)" in readme
    assert f"what_{CODE}" in (spoken / "pair/evidence.csv").read_text("utf-8").splitlines()[0]
    assert f"summary_{CODE}" in (spoken / "many.csv").read_text("utf-8").splitlines()[0]
