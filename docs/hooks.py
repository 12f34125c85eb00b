"""What the build adds to MkDocs: formulas, numbers from the code, reports and the notebook.

Formulas become MathML while the site is built, so that reading it needs no script. The menu of
tests and the limits of the verdict are taken from the code, so that pages cannot fall behind it.
Reports and the notebook are shown if they are there: they are made by commands, not written.
The page of the dispute is drawn from published numbers, or from what `kinprint reproduce` measured
where its `reproduction.json` lies here as `dispute.json`.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kinprint import text
from kinprint.report.figures.drawing import picture
from kinprint.report.files import in_language
from kinprint.report.schema import ReproductionDocument, decode
from kinprint.report.views.claims import claims_page, origin_of_numbers
from kinprint.report.views.reproduction import measured_numbers
from kinprint.studies.charts import Chart
from kinprint.studies.reproduction.claim_checks import CHECKS
from kinprint.studies.reproduction.claims import judged_claims, numbers
from kinprint.studies.reproduction.pictures import dispute_pictures
from kinprint.text import Words
from kinprint.text.catalogue import FIRST

# Pages of real comparisons, in the order in which a reader should see them. Words of this module
# are in English where a language has none.
REPORTS = {
    "derived": Words({"en": "base-a and a-cpt: derived", "ko": "base-a와 a-cpt: 파생"}),
    "laundered": Words({
        "en": "base-a and a-rotated: derived, in disguise", "ko": "base-a와 a-rotated: 위장한 파생",
    }),
    "independent": Words({
        "en": "base-a and base-b: no evidence", "ko": "base-a와 base-b: 증거 없음",
    }),
    "norms-only": Words({
        "en": "base-a and a-normsonly: dependent, by norms alone",
        "ko": "base-a와 a-normsonly: norm만으로 의존",
    }),
    "same-init": Words({
        "en": "base-a and tie-a: same initialisation", "ko": "base-a와 tie-a: 초기값만 같음",
    }),
    "many": Words({"en": "many models at once", "ko": "여러 모델을 한꺼번에"}),
}  # fmt: skip
_HEADS = Words(
    {"en": "test | what it compares | share | from", "ko": "검정 | 비교하는 것 | 몫 | 수준"}
)
FONTS = Path(__file__).resolve().parents[1] / "src/kinprint/report/fonts"
_PAGES = TemporaryDirectory(prefix="kinprint-site-")
MEASURED = Path(__file__).with_name("dispute.json")
NOTEBOOK = "notebooks/first-comparison.ipynb"
_ABSENT = Words({
    "en": "Not made in this build of the site.",
    "ko": "이번에 만든 사이트에는 들어 있지 않습니다.",
})  # fmt: skip
_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</(?P=tag)>',
    re.DOTALL,
)

_VALUE = re.compile(r"\{\{ (\w+) \}\}")
_PICTURE = re.compile(r"<!-- picture (\w+) -->")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add pages of reports, drawn from their data, and a font that has Korean letters."""
    from mkdocs.structure.files import File

    for weight in ("regular", "bold"):
        name = f"kinprint-sans-{weight}.otf"
        source = str(FONTS / name)
        files.append(File.generated(config, f"assets/{name}", abs_src_path=source))
    for data in sorted((_docs(config) / "reports").glob("*.json")):
        source = str(_drawn(data))
        files.append(File.generated(config, f"reports/{data.stem}.html", abs_src_path=source))
    for source in _drawn_pictures():
        files.append(File.generated(config, f"assets/{source.name}", abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Put reports, the menu of tests and numbers of the code where a page asks for them."""
    language = _language(page)
    if "<!-- reports -->" in markdown:
        markdown = markdown.replace("<!-- reports -->", _reports(_docs(config), language))
    if "<!-- menu -->" in markdown:
        markdown = markdown.replace("<!-- menu -->", _menu(language))
    if "<!-- claims -->" in markdown:
        claims = "\n".join(claims_page(judged_claims(_measured()), language, level=3))
        claims = f'<div class="claims" markdown>\n\n{claims}\n</div>'
        markdown = markdown.replace("<!-- claims -->", claims)
    origin = origin_of_numbers(bool(_measured()), language)
    markdown = markdown.replace("<!-- origin -->", origin)
    markdown = _PICTURE.sub(lambda match: _picture(match[1], language), markdown)
    # A name that the code does not have ends the build.
    return _VALUE.sub(lambda match: _values()[match[1]], markdown)


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Turn formulas into MathML, and show the notebook where a page asks for it."""
    found = _FORMULA.sub(_mathml, html)
    if "<!-- notebook -->" in found:
        found = found.replace("<!-- notebook -->", _notebook(_docs(config), _language(page)))
    return found


@cache
def _drawn(data: Path) -> Path:
    """The page of a report's data; the translations' plugin wants it as a file."""
    import kinprint

    page = Path(_PAGES.name, f"{data.stem}.html")
    kinprint.report(data).save(page)
    return page


@cache
def _measured() -> dict[str, float]:
    """What was measured on the real models, if a reproduction of them is here."""
    if not MEASURED.is_file():
        return {}
    document = decode(MEASURED.read_bytes())
    if not isinstance(document, ReproductionDocument) or document.replica:
        raise ValueError(f"{MEASURED} is no reproduction of real models")
    return measured_numbers(document)


@cache
def _drawn_pictures() -> tuple[Path, ...]:
    """The pictures of the dispute in every language, drawn once for the pages of all languages."""
    charts = dispute_pictures(_measured())
    return tuple(_drawn_picture(chart, one) for chart in charts for one in text.languages())


def _drawn_picture(chart: Chart, language: str) -> Path:
    place = Path(_PAGES.name, f"{in_language(f'dispute-{chart.name}', language)}.png")
    place.write_bytes(picture(chart, "png", language))
    return place


def _picture(name: str, language: str) -> str:
    """A picture of the dispute, with its title and what stands below it for those who hear it."""
    chart = next(one for one in dispute_pictures(_measured()) if one.name == name)
    said = " ".join(words[language] for words in (chart.title, chart.note) if words is not None)
    place = f"assets/{in_language(f'dispute-{name}', language)}.png"
    return f'<div class="wide" markdown>\n\n![{said}]({place})\n\n</div>'


def _docs(config: Any) -> Path:
    return Path(config["docs_dir"])


def _language(page: Any) -> str:
    """The language of a page, from the end of its name: `guide.ko.md`."""
    ends = Path(page.file.src_uri).suffixes
    return ends[-2].removeprefix(".") if len(ends) > 1 else FIRST


def _reports(docs: Path, language: str) -> str:
    lines = [
        f"- [{words[language]}](reports/{name}.html)"
        for name, words in REPORTS.items()
        if (docs / "reports" / f"{name}.json").is_file()
    ]
    return "\n".join(lines) or f"*{_ABSENT[language]}*"


def _menu(language: str) -> str:
    from kinprint.lineage.tests.menu import menu

    quick = {entry.name for entry in menu("quick")}
    rows = [(_HEADS[language],), ("---",) * 4]
    for entry in menu("standard"):
        words = text.say(f"test.{entry.name}.compares", language)
        level = "quick" if entry.name in quick else "standard"
        rows.append((f"`{entry.name}`", words, f"{100 * entry.share:.1f} %", f"`{level}`"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@cache
def _values() -> dict[str, str]:
    from kinprint.diff import direction, given
    from kinprint.lineage import kind
    from kinprint.lineage.parts import arranged, columns, equality, gains, judging, taken_over
    from kinprint.lineage.tests import invariants

    two, span = (invariants.LIMITS[each] for each in ("two_of_three", "span"))
    table = invariants.known_pairs()
    known = {each: table["gated", "whole", each] for each in ("two_of_three", "span")}
    plain = [each for reading in ("whole", "rows") for each in table["plain", reading, "nearest"]]
    rates = invariants.error_rates()
    innocent = [rates["aside", "gated", "whole", kind] for kind in ("stranger", "pupil")]
    plain_innocent = [rates["aside", "plain", "rows", kind] for kind in ("stranger", "pupil")]
    return {
        "information": f"{equality.INFORMATION:.0f}",
        "fewest_rows": str(gains.FEWEST_ROWS),
        "narrower": str(taken_over.NARROWER),
        **{
            f"{name}_{limit}": f"{getattr(limits, limit):.2f}"
            for name, limits in (
                ("wide", taken_over.LIMITS),
                ("narrow", taken_over.NARROW),
                ("other_width", taken_over.OTHER_WIDTH),
            )
            for limit in ("gains", "matrices", "norms")
        },
        "apart_gains": f"{taken_over.APART_GAINS:.2f}",
        "agreeing": str(direction.AGREEING),
        "same_update": f"{given.SAME_UPDATE:.3f}",
        "same_scale": "{:.1f} – {:.1f}".format(*given.SAME_SCALE),
        "in_common": f"{given.IN_COMMON:.1f}",
        "subspace": f"{given.SUBSPACE:.2f}",
        "alike": f"{given.ALIKE:.2f}",
        "farthest": f"{given.FARTHEST:.1f}",
        "most_rounding": f"{given.MOST_ROUNDING:.1f}",
        "trained": f"{100 * taken_over.TRAINED:.0f} %",
        "learnt_embedding": f"{taken_over.LEARNT_EMBEDDING:.2f}",
        "turnable": f"{taken_over.TURNABLE:.0f}",
        "added_rows": f"{taken_over.ADDED_ROWS:.2f}",
        "same_init_matrices": f"{taken_over.SAME_INIT_MATRICES:.2f}",
        "learnt_gains": f"{100 * gains.LEARNT:.0f} %",
        "copied": f"{judging.COPIED:.2f}",
        "retrained": f"{judging.RETRAINED:.2f}",
        "unlike": f"{columns.UNLIKE:.2f}",
        "turned": f"{arranged.TURNED:.2f}",
        "arranged": f"{arranged.ARRANGED:.2f}",
        "mixed": f"{arranged.MIXED:.2f}",
        "columns": f"{taken_over.COLUMNS:.2f}",
        "arranged_norms": f"{arranged.ARRANGED_NORMS:.2f}",
        "half": f"{100 * kind.HALF:.0f} %",
        "two_limit": f"{two.mean:.2f}",
        "two_layer": f"{two.layer:.2f}",
        "span_limit": f"{span.mean:.2f}",
        "span_layer": f"{span.layer:.2f}",
        "two_known": f"{max(each.largest for each in known['two_of_three']):.2f}",
        "span_known": f"{max(each.largest for each in known['span']):.2f}",
        "known_pairs": str(sum(len(each.null) for each in known["span"])),
        "aside_innocent": str(sum(rate.of for rate in innocent)),
        "aside_accused": str(sum(rate.count for rate in innocent)),
        "aside_kin": str(rates["aside", "gated", "whole", "descendant"].of),
        "aside_found": str(rates["aside", "gated", "whole", "descendant"].count),
        "aside_found_rows": str(rates["aside", "gated", "rows", "descendant"].count),
        "aside_attacks": str(rates["aside", "gated", "whole", "attack"].of),
        "aside_seen": str(rates["aside", "gated", "whole", "attack"].count),
        "aside_twins": str(rates["aside", "gated", "whole", "twin"].count),
        "plain_known": f"{max(each.largest for each in plain):.2f}",
        "plain_pairs": str(sum(len(each.null) for each in table["plain", "whole", "nearest"])),
        "plain_aside": str(sum(rate.of for rate in plain_innocent)),
        "plain_accused": str(sum(rate.count for rate in plain_innocent)),
        "plain_kin": str(rates["aside", "plain", "rows", "descendant"].of),
        "plain_found": str(rates["aside", "plain", "whole", "descendant"].count),
        "plain_found_rows": str(rates["aside", "plain", "rows", "descendant"].count),
        "aside_all_twins": str(rates["aside", "gated", "whole", "twin"].of),
    } | _dispute_values()


def _dispute_values() -> dict[str, str]:
    """Numbers of the page of the dispute, computed as its claims are."""
    known = numbers(_measured())
    by_layer, kin, posts, first = (
        CHECKS[name](known).fields
        for name in (
            "random-level", "independent-models", "post-norm-first-layer", "first-layer",
        )
    )  # fmt: skip
    return {
        "pair_at_ten": f"{kin['pair']:.3f}",
        "layer_zero": f"{first['value']:.3f}",
        "phi_post_zero": f"{posts['phi']:.3f}",
        "layers_mean": f"{by_layer['mean']:.3f}",
        "layers_high": f"{by_layer['high']:.3f}",
        "layers_beyond": f"{by_layer['beyond']}",
        "layers_count": f"{by_layer['layers']}",
        "layers_often": f"{by_layer['often']:.0f} %",
        "layers_apart": f"{by_layer['apart']:.1f}",
        "layers_together": f"{by_layer['together']:.1f}",
        "layers_p": f"{by_layer['p']:.0f} %",
        "dense_all": f"{kin['dense_all']:.3f}",
        "dense_unrelated": f"{kin['dense']:.3f}",
        "claims": str(len(judged_claims())),
    }


def _mathml(match: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    display = "inline" if match["open"] == "(" else "block"
    found = str(convert(html.unescape(match["tex"]).strip(), display=display))
    return found if display == "inline" else f'<div class="formula">{found}</div>'


def _notebook(docs: Path, language: str) -> str:
    path = docs / NOTEBOOK
    if not path.is_file():
        return f"<p><em>{_ABSENT[language]}</em></p>"
    import nbconvert

    exporter: Any = nbconvert.HTMLExporter  # comes without types
    body, _ = exporter(template_name="basic").from_filename(str(path))
    return f'<div class="notebook">{body}</div>'
