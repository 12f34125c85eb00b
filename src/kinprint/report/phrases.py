"""What reports say of their own accord, beside the words that studies bring."""

from __future__ import annotations

from kinprint.text import Words

NO_VALUE = Words("no value", "값 없음")
MORE_SERIES = Words("{count} more, named in the table", "그 밖의 {count}개, 이름은 표에 있음")
NO_VALUES = Words("there are no values to draw", "그릴 값이 없습니다")
AXIS = Words("{label} (axis from {low} to {high}; zero is not on it)",
             "{label} (축 범위 {low}~{high}, 0은 포함되지 않음)")  # fmt: skip
COLOURS = Words("{label} (colours run from {low} to {high})", "{label} (색 범위 {low}~{high})")
BAND = Words("{label}: {middle} (from {low} to {high})", "{label}: {middle} ({low}~{high})")
BAND_POINT = Words("{label}: {middle}", "{label}: {middle}")

STEPS = {
    "kept": Words("kept", "유지"),
    "retrained": Words("retrained", "재학습"),
    "added": Words("added", "추가"),
    "removed": Words("removed", "제거"),
    "changed": Words("changed", "변경"),
}

SHOWS = Words("What it shows", "보여 주는 것")
CANNOT = Words("What it cannot show", "보여 줄 수 없는 것")
FINDINGS = Words("Findings", "결과")
PICTURES = Words("Pictures", "그림")
TABLES = Words("Tables", "표")
STATUSES = Words("Rows by status", "상태별 행 수")
NUMBERS = Words("Numbers that sum it up", "요약 수치")
MODELS = Words("Models", "모델")
STATUS = Words("status", "상태")
ROWS = Words("rows", "행 수")
NAME = Words("name", "이름")
VALUE = Words("value", "값")
SHORTENED = Words(
    "{shown} of {total} rows; all of them in [{file}]({link}).",
    "전체 {total}행 가운데 {shown}행입니다. 전부는 [{file}]({link})에 있습니다.",
)
WHOLE = Words("As a file: [{file}]({link}).", "파일: [{file}]({link}).")
LEFT_OUT = Words(
    "(not shown: rows {rows}, columns {columns}; see -o DIR or --format json)",
    "(나머지 {rows}행, {columns}열은 -o DIR 또는 --format json으로 보십시오)",
)
EMPTY = Words("No rows.", "행이 없습니다.")
SAMPLE = Words(
    "Of matrices at most {rows} rows were read, the same ones of every model (seed {seed}). "
    "Numbers about matrices are estimates from these rows.",
    "행렬은 모델마다 같은 행을 최대 {rows}개씩만 읽었습니다(시드 {seed}). "
    "행렬에 관한 수치는 이 행들에서 얻은 추정값입니다.",
)
WHOLE_SAMPLE = Words("Matrices were read whole.", "행렬을 전부 읽었습니다.")
DATA = Words(
    "All numbers of the tables and pictures: [{file}]({link}).",
    "표와 그림의 모든 수치: [{file}]({link}).",
)
NO_VERDICT = Words(
    "A study reports measurements and reaches no verdict.",
    "연구는 측정값을 보고할 뿐 판정을 내리지 않습니다.",
)
OTHER_LANGUAGE = Words("[한국어](README.ko.md)", "[English](README.md)")

LABELS_KO = {
    "NOT the real model: a sparse replica made by kinprint": (
        "실제 모델이 아님: kinprint가 만든 희소 복제본"
    ),
}
"""Labels that models carry in their files, as Korean pictures show them."""
