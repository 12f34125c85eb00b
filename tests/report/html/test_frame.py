import base64
import hashlib
import re

import pytest
from markupsafe import Markup

from kinprint.report.views.html import frame
from kinprint.text import languages


def page(language: str = "en") -> str:
    bodies = {one: Markup("<main>{}</main>").format(one) for one in languages()}
    return frame.assemble({"en": "A & <b>", "ko": "가"}, bodies, language)


def test_the_policy_names_exactly_what_the_page_carries() -> None:
    made = page()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', made)
    assert policy is not None
    for element in ("style", "script"):
        inside = re.findall(rf"<{element}>(.*?)</{element}>", made, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()) for one in inside]
        named = policy.group(1).replace("&#39;", "'")
        listed = " ".join(f"'sha256-{one.decode()}'" for one in digests)
        assert f"{element}-src {listed};" in named
    assert "default-src &#39;none&#39;" in policy.group(1)
    assert "unsafe" not in policy.group(1)


def test_a_running_head_cannot_leave_its_style() -> None:
    bodies = {one: Markup("<main></main>") for one in languages()}
    made = frame.assemble(dict.fromkeys(languages(), "t"), bodies, "en", 'a"}</style><b> × 가')
    head = made[made.index("@top-left") : made.index("</head>")]
    assert '"\\61 \\22 \\7d \\3c ' in head and "\\ac00 " in head and "<b>" not in head


def test_the_policy_stands_before_what_it_governs() -> None:
    made = page()
    assert made.index("Content-Security-Policy") < made.index("<style>") < made.index("<script>")


@pytest.mark.parametrize("language", languages())
def test_the_language_asked_for_shows_and_the_other_is_there(language: str) -> None:
    made = page(language)
    assert f'<html lang="{language}"' in made
    (other,) = set(languages()) - {language}
    assert f'class="side" id="{language}" lang="{language}"' in made
    assert f'class="side other" id="{other}" lang="{other}"' in made


def test_titles_are_escaped_and_an_unknown_language_gets_english() -> None:
    assert "<title>A &amp; &lt;b&gt;</title>" in page()
    assert page("fr") == page("en")


def test_the_page_holds_no_address_but_its_own_places() -> None:
    made = page()
    assert not re.search(r"https?://|@import|url\(", made)
    assert set(re.findall(r'href="([^"]*)"', made)) <= {
        "data:,",
        "#en",
        "#ko",
        "#en-answer",
        "#ko-answer",
    }


def test_scripts_write_text_only() -> None:
    script = (frame._ASSETS / "page.js").read_text(encoding="utf-8")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", script
    )
