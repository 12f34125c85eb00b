"""What models are called: short, and never two alike unless they are one and the same."""

from __future__ import annotations

import pytest

from kinprint.records import ModelRef
from kinprint.titles import full_titles, public_name, short_titles, tensor_title


def hub(name: str, commit: str = "", path: str = "") -> ModelRef:
    return ModelRef(name, "hub", name, commit, path)


def local(given: str) -> ModelRef:
    return ModelRef(given, "local", given.rstrip("/"))


@pytest.mark.parametrize(
    ("refs", "short", "full"),
    [
        ([hub("org/one"), hub("org/two")], ["one", "two"], ["org/one", "org/two"]),
        ([hub("x/m"), hub("y/m")], ["x/m", "y/m"], ["x/m", "y/m"]),
        ([hub("gpt2"), hub("org/two")], ["gpt2", "two"], ["gpt2", "org/two"]),
        ([local("/a/one/"), local("two")], ["one", "two"], ["one", "two"]),
        ([local("/a/m"), local("/b/m")], ["a/m", "b/m"], ["a/m", "b/m"]),
        ([local("/a/c/m"), local("/b/c/m")], ["a/c/m", "b/c/m"], ["a/c/m", "b/c/m"]),
        ([local("m"), local("/b/m")], ["m", "b/m"], ["m", "b/m"]),
        ([hub("org/m"), local("/zoo/m")], ["org/m", "zoo/m"], ["org/m", "m"]),
        (
            [hub("org/m", "a" * 40), hub("org/m", "b" * 40)],
            [f"org/m@{'a' * 12}", f"org/m@{'b' * 12}"],
            [f"org/m@{'a' * 12}", f"org/m@{'b' * 12}"],
        ),
        (
            [hub("org/m", "a" * 40, "q4.gguf"), hub("org/m", "a" * 40, "q8.gguf")],
            ["org/m/q4.gguf", "org/m/q8.gguf"],
            ["org/m/q4.gguf", "org/m/q8.gguf"],
        ),
        (
            [local("/a/m"), local("/a/m"), local("/b/m")],
            ["a/m", "a/m", "b/m"],
            ["a/m", "a/m", "b/m"],
        ),
        ([local("/a/m"), local("/a/m")], ["m", "m"], ["m", "m"]),
        (
            [local("/a/one/model"), local("/b/two/final")],
            ["one/model", "two/final"],
            ["one/model", "two/final"],
        ),
        (
            [local("/x/q/model.safetensors"), local("/y/r/model-00001-of-00002.safetensors")],
            ["q/model.safetensors", "r/model-00001-of-00002.safetensors"],
            ["q/model.safetensors", "r/model-00001-of-00002.safetensors"],
        ),
        (
            [local(f"/h/hub/models--acme--foo/snapshots/{'c' * 40}"), local("bar")],
            ["foo", "bar"],
            [f"acme/foo@{'c' * 12}", "bar"],
        ),
        ([local("model"), local("/weights")], ["model", "weights"], ["model", "weights"]),
    ],
)  # fmt: skip
def test_the_shortest_name_that_tells_apart(
    refs: list[ModelRef], short: list[str], full: list[str]
) -> None:
    assert short_titles(refs) == short
    assert full_titles(refs) == full


def test_a_folder_is_called_by_its_path_where_it_was_given_as_a_dot() -> None:
    here = ModelRef(".", "local", "/models/mine")
    assert short_titles([here]) == ["mine"] == full_titles([here])


def test_folders_of_one_name_in_different_places_are_told_apart() -> None:
    one, other = (ModelRef(f"/{top}/q/m", "local", "q/m") for top in ("x", "y"))
    assert short_titles([one, other]) == ["x/q/m", "y/q/m"] == full_titles([one, other])
    typed = [ModelRef(given, "local", "q/m") for given in ("q/m", "./q/m")]
    assert short_titles(typed) == ["m", "m"]


def test_a_revision_that_was_asked_for_is_in_the_name() -> None:
    asked = ModelRef("hf://acme/foo@v1.0", "hub", "acme/foo", "d" * 40)
    assert full_titles([asked]) == ["acme/foo@v1.0"] and short_titles([asked]) == ["foo"]
    other = ModelRef("acme/foo@v2.0", "hub", "acme/foo", "e" * 40)
    assert short_titles([asked, other]) == ["acme/foo@v1.0", "acme/foo@v2.0"]


@pytest.mark.parametrize(
    ("given", "public"),
    [
        ("/home/me/secret/llama", "./llama"),
        ("~/llama/model", "./llama/model"),
        ("../zoo/llama", "./llama"),
        ("zoo/llama", "zoo/llama"),
        ("/hub/models--acme--foo/snapshots/0123456", "acme/foo@0123456"),
        ("acme/foo@v1", "acme/foo@v1"),
        ("https://host/x.gguf", "https://host/x.gguf"),
    ],
)
def test_names_that_others_read_do_not_tell_where_a_folder_lies(given: str, public: str) -> None:
    assert public_name(given) == public


def test_an_address_keeps_its_file_where_there_is_little_room() -> None:
    given = "https://host/models/x.safetensors"
    assert short_titles([ModelRef(given, "url", given)]) == ["x.safetensors"]
    assert full_titles([ModelRef(given, "url", given)]) == [given]


def test_a_tensor_is_called_by_what_it_is_in_every_language() -> None:
    named = tensor_title("norm_in", 9, None, "")
    assert named["en"] == "input norm of layer 9" and named["ko"].startswith("9번 레이어의 ")
    assert tensor_title("expert_up", 1, 3, "vision")["en"].endswith(
        "of expert 3 of layer 1 in vision"
    )
    assert tensor_title("odd", None, None, "")["ko"] == "odd"
