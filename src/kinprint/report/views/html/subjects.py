"""The models of a comparison side by side: what pins them, what they declare, how they are set."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.report.schema import ComparisonDocument, SettingRow, Subject
from kinprint.report.translation import translated
from kinprint.report.views.html.words import Say, named

_DIGESTS = 12
_CLAIMS = 8
_SETTINGS = 120
_TEXT = 200  # letters of a value


class ModelsView(Struct, frozen=True):
    """Facts of both models as rows, what each declares, and its files."""

    titles: tuple[str, ...]
    rows: tuple[tuple[Markup, tuple[object, ...]], ...]
    claims: tuple[tuple[str, tuple[Markup, ...]], ...]
    files: tuple[tuple[str, str, str, str | None], ...]
    more_files: int


class SettingsView(Struct, frozen=True):
    """Settings that differ, and those that are equal."""

    differ: tuple[SettingRow, ...]
    equal: tuple[SettingRow, ...]
    more: int

    @property
    def count(self) -> int:
        """All of them."""
        return len(self.differ) + len(self.equal) + self.more


def models(document: ComparisonDocument, language: str, say: Say) -> ModelsView:
    """Both models side by side; a fact that neither has is left out."""
    subjects = document.models

    def formats(subject: Subject) -> str:
        shown = subject.formats[:_CLAIMS]
        return ", ".join(translated(document, name, language) for name in shown)

    facts: tuple[tuple[Markup, list[object]], ...] = (
        (say("page.models.name"), [one.called for one in subjects]),
        (say("page.models.kind"), [named(say, "page.kind.", one.kind) for one in subjects]),
        (say("page.models.commit"), [_mono(one.commit) for one in subjects]),
        (say("page.models.published"), [one.published for one in subjects]),
        (say("page.models.changed"), [one.changed for one in subjects]),
        (say("page.models.architecture"), [one.architecture for one in subjects]),
        (say("page.models.formats"), [formats(one) for one in subjects]),
        (say("page.models.files"), [_files(one, say) for one in subjects]),
        (say("page.models.tokenizer"), [_tokenizer(one, say) for one in subjects]),
    )
    unknown = say("page.models.unknown")
    rows = tuple(
        (name, tuple(value or unknown for value in values)) for name, values in facts if any(values)
    )
    listed = [(one, each) for one in subjects for each in one.digests[:_DIGESTS]]
    return ModelsView(
        titles=tuple(one.title or one.name for one in subjects),
        rows=rows,
        claims=tuple((one.title or one.name, tuple(_claims(one, say))) for one in subjects),
        files=tuple(
            (one.title or one.name, each.path, in_words(each.bytes), each.sha256)
            for one, each in listed
        ),
        more_files=sum(max(one.files - len(one.digests[:_DIGESTS]), 0) for one in subjects),
    )


def settings(rows: Sequence[SettingRow]) -> SettingsView | None:
    """Settings that differ before those that are equal; None where none is known."""
    if not rows:
        return None
    differ = [one for one in rows if one.a != one.b]
    equal = [one for one in rows if one.a == one.b]
    kept = tuple(differ[:_SETTINGS]), tuple(equal[:_SETTINGS])
    return SettingsView(*kept, more=len(rows) - len(kept[0]) - len(kept[1]))


def _claims(one: Subject, say: Say) -> list[Markup]:
    return [
        say("page.models.claim-of", model=each.model, relation=each.relation, where=each.where)
        if each.relation
        else say("page.models.claim-plain", model=each.model, where=each.where)
        for each in one.claims[:_CLAIMS]
    ]


def _files(one: Subject, say: Say) -> Markup | None:
    if not one.files:
        return None
    return say("page.models.files-of", count=f"{one.files:,}", bytes=in_words(one.bytes))


def _tokenizer(one: Subject, say: Say) -> object:
    known = one.tokenizer
    if known is None:
        return None
    if known.tokens is None:
        return known.file
    return say(
        "page.models.tokenizer-of", kind=known.kind or known.file, tokens=f"{known.tokens:,}"
    )


def _mono(text: str | None) -> Markup | None:
    return (
        None if not text else Markup('<span class="mono">{}</span>').format(printable(text, _TEXT))
    )
