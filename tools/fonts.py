"""Makes the fonts in src/kinprint/report/fonts: `python tools/fonts.py FOLDER`.

FOLDER holds Pretendard-Regular.otf, Pretendard-SemiBold.otf and their LICENSE, as the package
`pretendard` of npm has them under dist/public/static (version 1.3.9). Only what Korean and
English pictures need is kept: a whole Korean font is many times larger than the program. The
licence reserves the font's name for unchanged copies, so the subset has another.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from fontTools import subset  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

FAMILY = "Kinprint Sans"
# What they are here, what they are there, and how heavy they say they are: titles stand in the
# second weight, which is the nearest to bold that is still pleasant in small type.
WEIGHTS = {"Regular": ("Regular", 400), "Bold": ("SemiBold", 700)}
# Signs that charts use: punctuation, currency, arrows, mathematics, shapes, Greek.
_RANGES = (
    (0x20, 0x17F), (0x391, 0x3C9), (0x2010, 0x2030), (0x2032, 0x203A), (0x2070, 0x209C),
    (0x20A9, 0x20AC), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2460, 0x2473), (0x25A0, 0x25FF),
    (0x2713, 0x2718), (0x3000, 0x3015), (0x3131, 0x3163),
)  # fmt: skip


def characters() -> set[int]:
    """What the fonts hold: the signs above and the 2,350 syllables of KS X 1001."""
    signs = {code for first, last in _RANGES for code in range(first, last + 1)}
    syllables = {
        ord(bytes((row, cell)).decode("euc_kr"))
        for row in range(0xB0, 0xC9)
        for cell in range(0xA1, 0xFF)
    }
    return signs | syllables


def build(source: Path, target: Path, weight: str) -> None:
    """Cut one weight down, name it anew, and write it without a date of its own."""
    original, _ = WEIGHTS[weight]
    font = TTFont(source / f"Pretendard-{original}.otf", recalcTimestamp=False)
    options = subset.Options(
        layout_features=["kern"], hinting=False, desubroutinize=False, notdef_outline=True,
        name_IDs=[0, 1, 2, 3, 4, 5, 6, 13, 14], glyph_names=False,
    )  # fmt: skip
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=characters())
    cutter.subset(font)
    _rename(font, weight)
    font.save(target / f"kinprint-sans-{weight.lower()}.otf")


def _rename(font: TTFont, weight: str) -> None:
    postscript = f"{FAMILY.replace(' ', '')}-{weight}"
    names = {
        1: FAMILY, 2: weight, 3: postscript, 4: f"{FAMILY} {weight}", 6: postscript,
        16: FAMILY, 17: weight,
    }  # fmt: skip
    table = font["name"]
    for record in list(table.names):
        if record.nameID in names:
            table.removeNames(nameID=record.nameID)
    for number, text in names.items():
        table.setName(text, number, 3, 1, 0x409)
    compact = font["CFF "].cff
    compact.fontNames = [postscript]
    top = compact[0].rawDict
    top.update(FullName=f"{FAMILY} {weight}", FamilyName=FAMILY, Weight=weight)
    font["OS/2"].usWeightClass = WEIGHTS[weight][1]


def main() -> None:
    """Build both weights and copy the licence."""
    source = Path(sys.argv[1])
    target = Path(__file__).resolve().parents[1] / "src/kinprint/report/fonts"
    for weight in WEIGHTS:
        build(source, target, weight)
    shutil.copyfile(source / "LICENSE", target / "OFL.txt")


if __name__ == "__main__":
    main()
