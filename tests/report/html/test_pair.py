import re
from html.parser import HTMLParser

import msgspec
import pytest

from kinprint.records import Relation, Status
from kinprint.report import answer
from kinprint.report.schema import ComparisonDocument
from kinprint.report.views.html.pair import pair_page
from tests.report.html.documents import HOSTILE, RELATIONS, comparison, hollow, hostile

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Elements, ids, headings and text of a page; complains about what is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.headings: list[int] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name in ("aria-labelledby", "aria-describedby", "data-told", "data-copies"):
                self.references += (value or "").split()
            if name == "href" and (value or "").startswith("#"):
                self.references.append((value or "")[1:])
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text.append(data)


def text_of(page: str) -> str:
    return " ".join(" ".join(Outline(page).text).split())


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_answer_its_statements_and_its_limits_are_there_in_both_languages(
    relation: Relation,
) -> None:
    document = comparison(relation)
    told = text_of(pair_page(document)).replace(" −", "−")
    for language in ("en", "ko"):
        assert answer.summary(document, document.verdict, language) in told
        for one in answer.statements(document, document.verdict, language):
            assert one.title in told and re.split(r"\(?p [≤=]|10\^", one.says)[0].strip() in told
    for title in (
        "What this does not show",
        "이 결과가 보여 주지 않는 것",
        "Do it again",
        "두 모델",
    ):
        assert title in told
    assert "NOT the real model" in told and "실제 모델이 아님" in told
    assert document.made.command in told


@pytest.mark.parametrize("relation", RELATIONS)
def test_pages_are_well_formed(relation: Relation) -> None:
    found = Outline(pair_page(comparison(relation)))
    assert len(set(found.ids)) == len(found.ids)
    assert set(found.references) <= set(found.ids)
    assert found.headings.count(1) == 2  # one a language
    steps = zip(found.headings, found.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)
    assert not {name for name in found.attributes if name.startswith("on")} | (
        found.attributes & {"style", "src", "srcset", "action"}
    )


def test_the_same_document_gives_the_same_bytes() -> None:
    assert pair_page(comparison(), "ko") == pair_page(comparison(), "ko")
    read_back = msgspec.json.decode(msgspec.json.encode(comparison()), type=ComparisonDocument)
    assert pair_page(read_back, "ko") == pair_page(comparison(), "ko")


def test_a_deep_pair_stays_small() -> None:
    assert len(pair_page(comparison("derived", 48)).encode()) < 1_500_000


def test_evidence_comes_strongest_first() -> None:
    page = pair_page(comparison("derived"))
    table = page[page.index('<table class="tests">') :]
    values = [float(x) for x in re.findall(r'data-sort="([-\d.e+]+)">10<sup>', table)]
    adjusted = values[1 : 2 * 15 : 2]
    assert len(adjusted) > 10 and adjusted == sorted(adjusted)


def test_silence_has_a_reason_in_the_language_of_the_page() -> None:
    told = text_of(pair_page(comparison("derived")))
    assert "would need: models of different width" in told
    assert "필요한 것: 폭이 다른 모델" in told


def test_a_claim_is_called_a_claim_and_raw_cosine_is_not_counted() -> None:
    told = text_of(pair_page(comparison("no-evidence")))
    assert "claim org/elder-7b (finetune; README.md: base_model)" in told
    assert "never counts it" in told and "결코 판정에 쓰지 않습니다" in told


def test_a_likeness_of_some_of_a_part_says_of_how_much() -> None:
    document = comparison()
    part = next(one for one in document.verdict.parts if one.likeness and one.state == "shared")
    some = msgspec.structs.replace(part, share=0.5)
    parts = [some if one is part else one for one in document.verdict.parts]
    verdict = msgspec.structs.replace(document.verdict, parts=parts)
    assert f"{part.likeness:.2f} (50 %)" in pair_page(
        msgspec.structs.replace(document, verdict=verdict)
    )


@pytest.mark.parametrize(("likeness", "shown"), [(1.0, "1.00"), (0.9999, "0.9999")])
def test_a_part_is_called_equal_as_the_whole_is(likeness: float, shown: str) -> None:
    document = comparison()
    part = next(one for one in document.verdict.parts if one.likeness and one.state == "shared")
    alike = msgspec.structs.replace(part, likeness=likeness, share=0.5)
    parts = [alike if one is part else one for one in document.verdict.parts]
    verdict = msgspec.structs.replace(document.verdict, parts=parts)
    page = pair_page(msgspec.structs.replace(document, verdict=verdict))
    assert f"{shown} (50 %)" in page


@pytest.mark.parametrize(("likeness", "shown"), [(1.0, "1.00"), (0.9999, "0.9999")])
def test_the_ruler_calls_equal_what_is_equal_as_far_as_it_is_linked(
    likeness: float, shown: str
) -> None:
    document = comparison()
    parts = [
        msgspec.structs.replace(one, likeness=likeness) if one.state.linked else one
        for one in document.verdict.parts
    ]
    amount = msgspec.structs.replace(document.verdict.amount, likeness=likeness, linked=0.5)
    verdict = msgspec.structs.replace(document.verdict, parts=parts, amount=amount)
    told = text_of(pair_page(msgspec.structs.replace(document, verdict=verdict)))
    assert f"linked parts, 50 %: {shown}" in told


def test_no_evidence_is_never_called_independence() -> None:
    told = text_of(pair_page(comparison("no-evidence")))
    assert "No evidence is not independence." in told
    assert "feed-forward 0.043" in told and "could have been missed" in told


def test_rotated_layers_say_how_many_moved() -> None:
    document = comparison("derived")
    assert document.shared is not None
    moved = [msgspec.structs.replace(one, b=(one.b + 1) % 6) for one in document.shared.layers]
    shared = msgspec.structs.replace(document.shared, layers=moved)
    told = text_of(pair_page(msgspec.structs.replace(document, shared=shared)))
    assert "6 of 6 layers answer to a layer with another number." in told


@pytest.mark.parametrize("relation", RELATIONS)
def test_numbers_that_are_none_and_lists_that_are_empty_leave_a_page(relation: Relation) -> None:
    told = text_of(pair_page(hollow(relation)))
    assert "nan" not in told.lower() and "None" not in told


@pytest.mark.parametrize("at", range(len(HOSTILE) - 1))
def test_hostile_texts_stay_texts(at: int) -> None:
    plain = Outline(pair_page(comparison("derived")))
    page = pair_page(hostile("derived", (HOSTILE[at], HOSTILE[at + 1])))
    found = Outline(page)
    assert found.tags <= plain.tags and found.attributes <= plain.attributes
    assert str(7 * 7777) not in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]", page)
    assert not [
        one for one in re.findall(r'href="([^"]*)"', page) if not one.startswith(("#", "data:,"))
    ]


def test_a_hostile_document_with_thousands_of_layers_stays_bounded() -> None:
    page = pair_page(hostile("dependent", (HOSTILE[0], HOSTILE[6]), layers=5000))
    assert len(page.encode()) < 3_000_000


def test_a_link_that_no_test_shows_says_what_it_rests_on() -> None:
    document = comparison("partial")
    weak = [
        msgspec.structs.replace(one, log10_p=-0.1, adjusted=0.0) if one.status == Status.OK else one
        for one in document.evidence
    ]
    said = "The link was found by none of these tests"
    assert said not in text_of(pair_page(document))
    assert said in text_of(pair_page(msgspec.structs.replace(document, evidence=weak)))


def test_the_first_screen_names_files_day_and_share_and_no_codes() -> None:
    document = comparison("derived")
    read = msgspec.structs.replace(document.read, date="2026-01-31")
    models = [msgspec.structs.replace(one, read=3_000_000) for one in document.models]
    page = pair_page(msgspec.structs.replace(document, read=read, models=models))
    first = page[page.index('id="en-answer"') : page.index("</section>")]
    told = re.sub("<[^>]+>", " ", first)
    for words in (
        "2026-01-31",
        "commit",
        "c0ffeec0ffeec0ff",
        "3 MB of 14 GB read",
        "linked parts, 75 %",
    ):
        assert words in " ".join(told.split()), words
    codes = {one.test for one in document.evidence}
    experts = page.index('class="experts"')
    before = page[page.index('id="en"') : experts]
    assert [code for code in codes if re.search(rf">{re.escape(code)}<", before)] == []


def test_rules_are_no_tests_of_a_link() -> None:
    document = comparison("derived")
    rule = msgspec.structs.replace(document.evidence[0], test="L.leading", tier="rule", log10_p=0.0)
    more = msgspec.structs.replace(document, evidence=[*document.evidence, rule])
    counted = [pair_page(one).count(">link found<") for one in (document, more)]
    assert counted[0] == counted[1] > 0
