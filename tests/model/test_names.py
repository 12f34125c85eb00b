"""The tables themselves: quick to read, consistent, and in the words of the roles."""

from __future__ import annotations

from kinprint.model.names.tables import load_tables
from kinprint.records import Role
from tests.work import at_most


def test_tables_are_read_once_and_with_little_work() -> None:
    load_tables.clear()
    with at_most(200_000):  # about 20 ms
        tables = load_tables()
    with at_most(10):
        assert load_tables() is tables


def test_every_word_is_a_role_and_every_role_has_a_word() -> None:
    tables = load_tables()
    words = [word for _, word in tables.inside]
    words += [*tables.block.values(), *tables.top.values()]
    words += [word for zone in tables.zone_words.values() for word in zone.values()]
    words += [word for condition in tables.conditions for word in condition.then.values()]
    for family in [*tables.families.values(), *tables.architectures.values()]:
        words += [*family.words.values(), *family.top.values(), *family.starts.values()]
    assert {word.role for word in words} == set(Role)


def test_words_are_small_letters() -> None:
    tables = load_tables()
    for words in (tables.block, tables.top, tables.suffixes, *tables.zone_words.values()):
        assert all(word == word.lower() for word in words)


def test_a_family_is_found_by_configuration_or_by_marks() -> None:
    tables = load_tables()
    by_type = tables.family_of({"model_type": "qwen"}, None)
    by_architecture = tables.family_of({"architectures": ["QWenLMHeadModel"]}, None)
    by_text = tables.family_of({"model_type": "x", "text_config": {"model_type": "gpt2"}}, None)
    assert by_type is not None and by_type.name == "qwen"
    assert by_architecture is not None and by_architecture.name == "qwen"
    assert by_text is not None and by_text.name == "gpt2"
    assert tables.family_of({"model_type": "never-heard-of"}, None) is None
    assert tables.family_with(frozenset({"self_attn.q_proj"})).name == "llama"
    assert tables.family_with(frozenset()).name == "unknown"
