"""Declared origins: what cards, configurations and headers name, and what hostile ones do not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.lineage.about.claims import (
    Claim,
    adapter_claims,
    card_claims,
    config_claims,
    gguf_claims,
    recipe_claims,
)


def card(*lines: str, closed: bool = True) -> bytes:
    return "\n".join(("---", *lines, *(("---", "# A model") if closed else ()))).encode()


def test_a_card_names_its_base() -> None:
    found = card_claims(
        card("license: mit", "base_model: org/base", "base_model_relation: finetune")
    )
    assert found == [Claim("README.md: base_model", "org/base", "finetune")]
    assert card_claims(card("base_model: org/base"))[0].relation == ""


def test_a_merge_names_all_of_its_models() -> None:
    found = card_claims(card("base_model:", "- org/one", "- org/two", "tags:", "- merge"))
    assert [(one.model, one.relation) for one in found] == [
        ("org/one", "merge"),
        ("org/two", "merge"),
    ]
    listed = card_claims(card("merged_models:", "- model: org/x", "  weight: 0.5"))
    assert listed == [Claim("README.md: merged_models", "org/x", "merge")]


def test_a_card_that_was_cut_says_only_what_is_whole() -> None:
    """The last field of a head without an end may be half of one."""
    cut = card("base_model: org/base", "tags:", "- a", closed=False)
    assert [one.model for one in card_claims(cut)] == ["org/base"]
    assert card_claims(card("license: mit", "base_model: org/ba", closed=False)) == []


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"# just text\nbase_model: no/claim\n",
        b"---\n",
        card("base_model: " + "[" * 2000),
        card("base_model: !!python/object/apply:os.system ['true']"),
        card("base_model: {a: b}"),
        card("base_model: 17"),
        card("base_model: " + "x" * 5000),
        card("tags: &a [x]", "base_model: [*a, *a]"),
        card("base_model: " + "9" * 6000),
        card("base_model: *nobody"),
        card("base_model:", "- &a {model: org/x}", "- {<<: [*a, *a]}"),
        card(
            "base_model:",
            "  a0: &a0 {k: v}",
            *(
                f"  a{at + 1}: &a{at + 1} {{<<: [{', '.join([f'*a{at}'] * 20)}]}}"
                for at in range(12)
            ),
        ),
        b"\xff\xfe---\nbase_model: x",
    ],
)
def test_hostile_and_empty_cards_say_nothing(raw: bytes) -> None:
    assert card_claims(raw) == []


def test_a_card_cannot_name_without_end() -> None:
    found = card_claims(card("base_model:", *(f"- org/m{at}" for at in range(500))))
    assert len(found) == 16


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80), st.sampled_from(["base_model: ", "base_model:\n- ", "tags: ", ""]))
def test_any_text_is_read_without_an_error(text: str, before: str) -> None:
    for one in card_claims(f"---\n{before}{text}\n---\n".encode("utf-8", "replace")):
        assert one.model and len(one.model) <= 200


def test_configurations_name_what_they_were_saved_from() -> None:
    told = config_claims({"_name_or_path": "org/base"}, ("org/own",), "config.json")
    assert told == [Claim("config.json: _name_or_path", "org/base")]
    assert config_claims({"_name_or_path": "org/own"}, ("org/own",), "config.json") == []
    assert config_claims({"_name_or_path": ""}, (), "config.json") == []
    adapter = adapter_claims({"base_model_name_or_path": "org/base"}, "adapter_config.json")
    assert adapter[0].relation == "adapter"


def test_a_gguf_header_names_bases_by_address_or_name() -> None:
    told = {
        "general.base_model.count": 2,
        "general.base_model.0.name": "Base 7B",
        "general.base_model.0.organization": "Org",
        "general.base_model.1.name": "Other",
        "general.base_model.1.repo_url": "https://example.org/org/other",
    }
    models = [one.model for one in gguf_claims(told, "m.gguf")]
    assert models == ["Org/Base 7B", "https://example.org/org/other"]
    assert gguf_claims({"general.base_model.count": 10**9}, "m.gguf") == []


def test_a_recipe_of_mergekit_names_what_was_merged() -> None:
    recipe = b"""
merge_method: ties
base_model: org/base
models:
  - model: org/one
    parameters: {weight: 0.5}
  - model: org/two
slices:
  - sources:
      - model: org/three
        layer_range: [0, 4]
"""
    found = [(claim.where, claim.model, claim.relation) for claim in recipe_claims(recipe)]
    where = "mergekit_config.yml: models"
    assert found == [
        ("mergekit_config.yml: base_model", "org/base", "merge"),
        (where, "org/one", "merge"),
        (where, "org/two", "merge"),
        (where, "org/three", "merge"),
    ]


@pytest.mark.parametrize(
    "recipe", [b"", b"- a list", b"models: 3", b"slices: [1, {sources: x}]", b"a: &a [*a]", b"\x00"]
)
def test_what_is_no_recipe_names_nothing(recipe: bytes) -> None:
    assert recipe_claims(recipe) == []
