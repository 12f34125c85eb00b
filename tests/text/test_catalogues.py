"""Every language says everything, with the same fields, and code asks for nothing else."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from gettext import GNUTranslations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinprint import text
from kinprint.lineage.alignment.residual import MapSource
from kinprint.records import Reason
from kinprint.text.catalogue import FOLDER, known_keys, languages, plural_form, template
from tests.syntax import SOURCE, source_nodes

PREFIXES = (
    "diff", "identify", "tree", "unmerge",
    "cause", "cli", "demo", "error", "help", "label", "measure", "note", "page", "reason", "report",
    "role", "study", "test", "verdict",
)  # fmt: skip
KEY = re.compile(rf"(?:{'|'.join(PREFIXES)})(?:\.[\w+-]+)+")
PREFIX = re.compile(rf"(?:{'|'.join(PREFIXES)})\.(?:[\w-]+\.)*")
FILE = re.compile(r"\.(?:css|html|js|j2)$")  # page.css is no sentence


def spoken_keys() -> Iterator[tuple[str, str]]:
    """Keys that stand in code and templates as they are, with where."""
    for path, node in source_nodes():
        match node:
            case ast.Constant(value=str(key)) if KEY.fullmatch(key) and not FILE.search(key):
                yield key, f"{path}:{node.lineno}"
    for path in sorted(SOURCE.rglob("*.j2")):
        for key in re.findall(r'say\("([^"]+)"', path.read_text("utf-8")):
            yield key, str(path.relative_to(SOURCE))


def built_keys() -> Iterator[re.Pattern[str]]:
    """What keys look like that code puts together: f"verdict.part.{part}", "role." + role."""
    for _, node in source_nodes():
        if isinstance(node, ast.Constant) and PREFIX.fullmatch(str(node.value)):
            yield re.compile(re.escape(str(node.value)) + r"[\w.+-]+")
        if isinstance(node, ast.JoinedStr) and node.values:
            parts = [
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"[\w.+-]+"
                for part in node.values
            ]
            if re.match(rf"(?:{'|'.join(PREFIXES)})\\\.", parts[0]):
                yield re.compile("".join(parts))


@pytest.mark.parametrize("language", text.languages())
def test_a_language_is_complete(language: str) -> None:
    assert set(text.known_keys(language)) == set(text.known_keys("en"))


@pytest.mark.parametrize("language", text.languages())
def test_languages_speak_of_the_same_fields(language: str) -> None:
    differing = [
        key
        for key in text.known_keys()
        if text.field_names(key, language) != text.field_names(key, "en")
    ]
    assert differing == []


def test_code_asks_for_keys_that_there_are() -> None:
    known = set(text.known_keys())
    assert [place for key, place in spoken_keys() if key not in known] == []


def test_every_key_is_asked_for() -> None:
    spoken = {key for key, _ in spoken_keys()}
    built = list(built_keys())
    assert [
        key
        for key in text.known_keys()
        if key not in spoken and not any(pattern.fullmatch(key) for pattern in built)
    ] == []


def test_reasons_are_those_of_the_records() -> None:
    """Their keys are made from names of the enum, so that a search for the words finds any."""
    reasons = {key for key in text.known_keys() if re.fullmatch(r"reason\.[\w-]+", key)}
    assert reasons == set(Reason)


def test_every_basis_that_is_found_has_a_name() -> None:
    names = {source.name.lower() for source in MapSource} - {MapSource.IDENTITY.name.lower()}
    assert {f"note.map.basis.{name}" for name in names} <= set(text.known_keys())


def test_an_unknown_key_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError, match=r"no\.such"):
        text.say("no.such", "en")


def test_an_unknown_language_gets_english() -> None:
    assert text.say("error.BadConfig", "xx", file="config.json", cause="c") == text.say(
        "error.BadConfig", "en", file="config.json", cause="c"
    )


def test_pieces_make_the_sentence_and_name_their_fields() -> None:
    pieces = text.spans("error.BadConfig", "ko", file="here", cause="c")
    assert "".join(piece.text for piece in pieces) == text.say(
        "error.BadConfig", "ko", file="here", cause="c"
    )
    assert [piece.text for piece in pieces if piece.field == "file"] == ["here"]


def test_a_message_inside_a_message_is_said_in_its_language() -> None:
    inner = text.message("error.BadConfig", file="config.json", cause="c")
    outer = text.words("cause.other", cause=inner)
    assert outer["ko"] == inner.say("ko")
    assert outer["en"] == inner.say("en")


COUNTED = re.compile(
    r"\{(\w+)(?::,)?\} (?:more |shared |norm |linked |packed |weight |query |key-value )?"
    r"(?:tensors|layers|matrices|rows|tokens|units|experts|pairs|files"
    r"|numbers|vectors|tests|parts|settings|heads|channels|bytes|groups|bits|values|steps)\b"
)
NEVER_ONE = {  # limits, lengths of what exists, and what is said of several alone
    "cause.gguf.alignment", "cause.gguf.split.other-count", "cause.gguf.split.tensors",
    "cause.index.too-long", "cause.reference.too-many-files",
    "cause.safetensors.header-beyond-file", "cause.safetensors.header-too-long",
    "cause.source.too-many-bytes", "cause.tokenizer.size", "cause.tokenizer.special",
    "cause.torch.large-entry", "diff.map.turned", "diff.operation.rotated",
    "diff.operation.rotated-changed",
    "error.AtlasFull", "error.DiskFull", "error.RangeIgnored",
    "note.adapter.replaced-several", "note.one-of-several",
    "page.config.tokens-of", "page.picture.ties", "reason.shared-tokens",
    "report.direction.training.a-first", "report.direction.training.b-first",
    "report.matrix.all-linked", "report.matrix.group-all",
    "report.matrix.level", "report.matrix.level-many",
    "study.claim.derived.finds", "study.claim.expected-if-independent.finds",
    "study.claim.random-level.finds", "study.common.several-pairs", "study.metrics.finding.random",
}  # fmt: skip


def _may_be_one(key: str) -> bool:
    """Whether the forms of a sentence are told apart, by gettext or by each number in it."""
    return text.catalogue.template(key, "en", 1) != text.catalogue.template(key, "en", 2)


def test_one_thing_is_not_several_in_english() -> None:
    plural = {
        key
        for key in text.known_keys()
        if COUNTED.search(text.catalogue.template(key, "en")) and not _may_be_one(key)
    }
    assert plural - NEVER_ONE == set()


def test_each_number_of_a_sentence_has_its_form() -> None:
    fields = {"compared": 1, "tensors": 2, "equal": 0, "share": 0.5, "numbers": 1}
    said = text.say("diff.totals", "en", **fields)
    assert said.startswith("1 of 2 tensors was compared, 0 of them are equal; 50.0 % of 1 number ")
    (number, word) = (
        piece for piece in text.spans("diff.several", "en", count=1) if piece.text != " "
    )
    assert (number.field, word.field, word.text) == ("count", "", "tensor")
    assert text.say("diff.several", "ko", count=1) == text.say(
        "diff.several", "ko", count=2
    ).replace("2", "1")


@given(share=st.floats(0, 3), decimals=st.integers(0, 4))
@example(share=0.995, decimals=0)
@example(share=0.005, decimals=0)
def test_nothing_and_all_are_said_of_nothing_and_all_alone(share: float, decimals: int) -> None:
    said = text.in_percent(share, decimals)
    number = float(said.strip("<> %"))
    assert (number == 0) == (share == 0) and (number != 100 or share >= 1)
    if said.startswith("<"):
        assert 100 * share < number
    elif said.startswith(">"):
        assert number < 100 * share < 100
    else:
        assert abs(number - 100 * share) <= 0.51 * 10.0**-decimals


@pytest.mark.parametrize(
    ("share", "said"), [(999.5, "99950.0 %"), (1e30, "> 100,000 %"), (math.inf, "> 100,000 %")]
)
def test_no_digits_are_said_of_what_is_beyond_measure(share: float, said: str) -> None:
    assert text.in_percent(share, 1) == said


def test_sentences_say_shares_by_that_rule() -> None:
    fields = {"tensors": 56, "compared": 56, "equal": 55, "numbers": 1_631_872}
    said = text.say("diff.totals", "en", share=1 / 1_631_872, **fields)
    assert said.endswith("; < 0.1 % of 1,631,872 numbers changed.")


@pytest.mark.parametrize("language", languages())
def test_sentences_are_those_that_gettext_finds(language: str) -> None:
    keys = list(known_keys(language))  # which compiles a source that is newer
    with (FOLDER / f"{language}.mo").open("rb") as file:
        judge = GNUTranslations(file)
    assert "cli.stopped" in keys and len(keys) == len(set(keys)) > 1000
    for key in keys:
        said = judge.gettext(key)  # where a key has several forms, gettext knows no single one
        assert template(key, language) == (judge.ngettext(key, key, 1) if said == key else said)
        for count in (0, 1, 2, 5, 21):
            several = judge.ngettext(key, key, count)
            assert template(key, language, count) == (said if several == key else several)
            assert plural_form(key, language, count) == judge.plural(count)  # type: ignore[attr-defined]
