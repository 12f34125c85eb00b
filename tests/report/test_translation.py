"""Texts of documents in other languages: carried with them, known, or left as they are."""

from __future__ import annotations

import pickle

import msgspec
import pytest

import kinprint
from kinprint import text
from kinprint.records import Reason
from kinprint.replica.manifest import LABEL
from kinprint.report.build.study import study_document
from kinprint.report.exports import render
from kinprint.report.schema import ComparisonDocument, decode, encode, settled
from kinprint.report.translation import Translator, translated, warning
from kinprint.report.views.markdown.escape import escaped
from kinprint.report.views.markdown.study import Names, page
from kinprint.report.views.terminal.study import study_lines
from kinprint.studies.results import Result, Table
from kinprint.text import Words
from tests.report import samples
from tests.report.kin_documents import comparison

REPLICA = f"org/one: {LABEL}"


def carrying(**texts: str) -> ComparisonDocument:
    return msgspec.structs.replace(comparison(), translations={"ko": texts})


def test_a_message_is_put_down_in_english_and_kept_in_other_languages() -> None:
    translator = Translator()
    message = Reason.SHARED_TOKENS.message(number=16)
    assert translator.said(message) == message.say("en")
    assert translator.said(None) == ""
    assert translator.kept == {"ko": {message.say("en"): message.say("ko")}}


def test_a_document_without_anything_to_translate_carries_nothing() -> None:
    translator = Translator()
    stranger = text.message("note.about-model", model="org/one", note="what a stranger wrote")
    assert translator.all_said([stranger]) == ["org/one: what a stranger wrote"]
    assert translator.kept is msgspec.UNSET
    untranslated = msgspec.structs.replace(comparison(), translations=translator.kept)
    assert b"translations" not in encode(untranslated)


def test_what_is_carried_goes_before_what_is_known() -> None:
    document = carrying(**{"models of different width": "옮긴 말"})
    assert translated(document, "models of different width", "ko") == "옮긴 말"
    assert translated(document, "models of different width", "en") == "models of different width"
    assert translated(document, "no such text", "ko") == "no such text"


@pytest.mark.parametrize(
    "message",
    [
        Reason.MODELS_OF_DIFFERENT_WIDTH.message(),
        Reason.NORM_VECTORS.message(number=5),
        Reason.SHARED_TOKENS.message(number=16),
    ],
)
def test_older_documents_are_translated_by_their_english(message: text.Message) -> None:
    assert translated(comparison(), message.say("en"), "ko") == message.say("ko")


@pytest.mark.parametrize("english", ["F16 against BF16", "org/one has no layer 3 gate"])
def test_what_could_be_anybodys_words_is_left_as_it_is(english: str) -> None:
    assert translated(comparison(), english, "ko") == english


def test_sentences_in_the_cells_of_a_study_are_read_in_every_language() -> None:
    shapes = text.sentence("study.reason.against", a="(4, 2)", b="(3, 2)")
    both = text.joined_sentences((shapes, "from another package", shapes))
    assert both == f"{shapes}; from another package"
    rows = ((1, "missing", pickle.loads(pickle.dumps(both))), (2, "ok", ""))
    tables = (Table("rows", Words({"en": "Rows"}), ("layer", "status", "reason"), rows),)
    document = settled(study_document(Result("sample", (), tables), samples.study()))
    assert document.tables[0].column("reason") == (both, "")
    assert document.translations == {"ko": {both: both.words["ko"]}}
    for language in text.languages():
        shown = both.words[language]
        readme = page(document, language, Names("result.json", {"rows": "rows.csv"}, {}))
        assert escaped(shown) in readme
        assert shown[:12] in "\n".join(line.text for line in study_lines(document, language))
        assert shown in kinprint.StudyResult(document, language)._repr_html_()


def test_labels_are_translated_after_the_name_of_their_model() -> None:
    document = msgspec.structs.replace(comparison(), labels=[REPLICA, "org/one: other"])
    assert translated(document, REPLICA, "ko").startswith("org/one: 실제 모델이 아님")
    assert warning(document, "en") == f"{LABEL}; other"
    assert warning(document, "ko").startswith("실제 모델이 아님") and "org" not in warning(
        document, "ko"
    )


def test_every_view_speaks_what_is_carried() -> None:
    note, left, why = "a note", "the rest", "routers of both models"
    plain = comparison()
    document = msgspec.structs.replace(
        plain,
        notes=[note],
        plan=msgspec.structs.replace(plain.plan, left_out=[left]),
        translations={"ko": {note: "메모", left: "나머지 것", why: "까닭"}},
    )
    again = decode(encode(document))
    assert again == document
    from kinprint.report.views.terminal.comparison import comparison_lines

    lines = "\n".join(line.text for line in comparison_lines(document, "ko"))
    page = render(document, ".html").decode()
    korean = page[page.index('id="ko" lang') :]
    assert "메모" in lines and note not in lines
    assert "메모" in korean and "나머지 것" in korean and "까닭" in korean
    assert not any(f">{one}<" in korean for one in (note, left, why))
    assert "메모" in render(document, ".md", "ko").decode()
