"""Two tokenizers side by side: fingerprints, overlap, shifted ids.

The figures of the derivation report for any two tokenizers, whatever files they come in.
"""

from __future__ import annotations

from kinprint import text
from kinprint.model.tokens import Vocabulary, align
from kinprint.model.tokens.likeness import Likeness, Run, compare_tokenizers, fingerprint
from kinprint.studies.charts import Bar, Bars
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.results import Cell, Fact, Output, RowStatus, Table
from kinprint.studies.study import Procedure, StudyInput
from kinprint.text import Words

SAMPLED_TOKENS = 8


def _run(inputs: StudyInput) -> Output:
    a, b = inputs.vocabularies[A], inputs.vocabularies[B]
    facts: dict[str, Fact] = {
        f"{side}_fingerprint": _identity(inputs.models[at].name, vocabulary)
        for side, at, vocabulary in (("A", A, a), ("B", B, b))
    }
    if a is None or b is None:
        return _unreadable(inputs, facts)
    found = compare_tokenizers(a, b, align(a, b))
    return Output(
        (_figure_table(found, a, b), _offset_table(found)),
        facts | _figures(a, b, found),
        (_chart(found),),
        (_finding(found),),
    )


def _unreadable(inputs: StudyInput, facts: dict[str, Fact]) -> Output:
    read = dict(zip(inputs.names, inputs.vocabularies, strict=True))
    reason = text.sentence("study.reason.no-tokenizer")
    rows = tuple(
        (name, RowStatus.OK, "") if vocabulary is not None else (name, RowStatus.MISSING, reason)
        for name, vocabulary in read.items()
    )
    title = text.words("study.tokenizers.table.readable")
    table = Table("tokenizers", title, ("model", "status", "reason"), rows)
    names = ", ".join(name for name, vocabulary in read.items() if vocabulary is None)
    finding = text.words("study.tokenizers.finding.nothing", names=names)
    return Output((table,), facts, (), (finding,))


def _identity(name: str, vocabulary: Vocabulary | None) -> Fact:
    if vocabulary is None:
        return None
    one = fingerprint(vocabulary)
    return {
        "model_id": name,
        "tokenizer_model_type": one.algorithm,
        "kind": one.kind,
        "vocab_size": one.used,
        "ids": one.size,
        "special_tokens": one.special,
        "vocabulary_sha256": one.vocabulary_sha256,
        "merges_len": one.merges,
        "merges_sha256_first1000": one.first_merges_sha256,
        "merges_sha256_all": one.merges_sha256,
    }


def _figures(a: Vocabulary, b: Vocabulary, found: Likeness) -> dict[str, Fact]:
    smaller = min(a.used, b.used)
    offsets: list[Fact] = [{"offset": offset, "count": count} for offset, count in found.offsets]
    merges = found.merges
    return {
        "token_set_overlap": {
            "intersection": found.overlap.shared,
            "union": found.overlap.union,
            "jaccard": found.overlap.jaccard,
            "overlap_vs_smaller": found.overlap.of_smaller,
            "special": found.special_shared,
        },
        "same_id_exact_matches": {
            "matches": found.same_id,
            "denom": smaller,
            "ratio": found.same_id / smaller if smaller else None,
        },
        "ascii_offset_histogram_top10": offsets,
        "best_ascii_offset": found.offsets[0][0] if found.offsets else None,
        "best_offset_longest_contiguous_run": _run_fact(found.best_run, a, b),
        "longest_contiguous_run": _run_fact(found.longest_run, a, b),
        "merges": None
        if merges is None
        else {
            "intersection": merges.shared,
            "union": merges.union,
            "jaccard": merges.jaccard,
            "overlap_vs_smaller": merges.of_smaller,
            "first_1000_equal": found.first_merges_equal,
        },
    }


def _run_fact(run: Run | None, a: Vocabulary, b: Vocabulary) -> Fact:
    if run is None:
        return None
    shown = range(min(run.length, SAMPLED_TOKENS))
    return {
        "run_len": run.length,
        "run_start_in_A": run.start_a,
        "run_start_in_B": run.start_b,
        "sample_tokens_A": [_text(a.tokens[run.start_a + at]) for at in shown],
        "sample_tokens_B": [_text(b.tokens[run.start_b + at]) for at in shown],
    }


def _text(token: bytes | None) -> str:
    return "" if token is None else token.decode("utf-8", "backslashreplace")


def _figure_table(found: Likeness, a: Vocabulary, b: Vocabulary) -> Table:
    merges = found.merges
    longest = found.longest_run
    rows: tuple[tuple[Cell, ...], ...] = (
        ("tokens_A", a.used),
        ("tokens_B", b.used),
        ("tokens_shared", found.overlap.shared),
        ("jaccard", found.overlap.jaccard),
        ("shared_of_smaller", found.overlap.of_smaller),
        ("same_id", found.same_id),
        ("best_ascii_offset", found.offsets[0][0] if found.offsets else None),
        ("longest_run", longest.length if longest else None),
        ("merges_shared", None if merges is None else merges.shared),
        ("merges_jaccard", None if merges is None else merges.jaccard),
        ("first_1000_merges_equal", found.first_merges_equal),
    )
    title = text.words("study.tokenizers.table.shared")
    return Table("tokenizers", title, ("figure", "value"), rows)


def _offset_table(found: Likeness) -> Table:
    title = text.words("study.tokenizers.table.shifts")
    return Table("ascii_offsets", title, ("offset", "count"), tuple(found.offsets))


def _chart(found: Likeness) -> Bars:
    bars = tuple(
        Bar(text.plain(f"{offset:+d}"), float(count), None, "pair")
        for offset, count in found.offsets
    )
    return Bars(
        "tokenizer_offsets",
        text.words("study.tokenizers.chart"),
        text.words("study.tokenizers.axis"),
        bars,
        digits=0,
    )


def _finding(found: Likeness) -> Words:
    run = found.longest_run
    return text.words(
        "study.tokenizers.finding.shared",
        shared=found.overlap.shared,
        share=found.overlap.of_smaller,
        same=found.same_id,
        run=run.length if run else 0,
    )


TOKENIZERS = Procedure(lambda inputs: [], _run)
