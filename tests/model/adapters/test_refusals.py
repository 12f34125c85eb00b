"""Adapters that cannot be merged, contradict themselves or mean harm are refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kinprint.errors import KinprintError, SliceOutside
from kinprint.model.adapters import merged_rows, needed, parse_adapter
from kinprint.model.adapters.naming import table
from kinprint.records import TensorSpec
from tests.model.adapters.fixtures import Stored, stored

A, B = np.ones((2, 6)), np.ones((4, 2))
PLAIN: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 3}
BASE = {"q.weight": (4, 6)}


def adapter(dtype: str = "F32", **changes: Any) -> Stored:
    arrays = {"q.lora_A.weight": A, "q.lora_B.weight": B}
    return stored(PLAIN | changes, arrays, dtype)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"peft_type": "VERA"}, "VeRA, whose random matrices"),
        ({"peft_type": "PREFIX_TUNING"}, "changes no weight"),
        ({"peft_type": "LOKR"}, "LoKr"),
        ({"peft_type": "SOMETHING_NEW"}, "'SOMETHING_NEW' is not one"),
        ({"init_lora_weights": "pissa_niter_4"}, "PiSSA has changed"),
        ({"init_lora_weights": "loftq"}, "LoftQ has changed"),
        ({"use_qalora": True}, "QA-LoRA"),
        ({"alora_invocation_tokens": [1]}, "activated LoRA"),
        ({"layer_replication": [[0, 4], [2, 6]]}, "layers that were repeated"),
        ({"lora_alpha": "much"}, "no number"),
        ({"lora_alpha": True}, "no number"),
        ({"lora_alpha": float("nan")}, "no number"),
        ({"alpha_pattern": {"q": None, "(": 2}}, "cannot be read"),
        ({"alpha_pattern": {"(a+)+b": 2}}, "more than a name needs"),
        ({"alpha_pattern": {"(?:x){9}": 2}}, "more than a name needs"),
        ({"trainable_token_indices": [1, 1]}, "trained twice"),
        ({"trainable_token_indices": {"e": "all"}}, "not a list of token numbers"),
    ],
)
def test_configurations(changes: dict[str, Any], words: str) -> None:
    if "alpha_pattern" in changes:
        changes = {"alpha_pattern": {k: v for k, v in changes["alpha_pattern"].items() if v}}
    with pytest.raises(KinprintError, match=words) as caught:
        adapter(**changes).matched(BASE)
    assert caught.value.fields["file"] == "adapter_config.json"
    assert "\n" not in caught.value.sentence("ko")


def test_every_refused_method_says_why() -> None:
    for method in table()["refused"]["methods"]:
        with pytest.raises(KinprintError, match="the adapter is "):
            parse_adapter({"peft_type": method}, {})
    for setting in table()["variants"]:
        with pytest.raises(KinprintError, match="which is not merged"):
            parse_adapter({"peft_type": "LORA", setting: True}, {})
    for start in table()["foreign"]:
        odd = {f"q.{start}x": TensorSpec(f"q.{start}x", "F32", (1,), "f", 0, 4)}
        with pytest.raises(KinprintError, match=r"is part of .*, which is not merged"):
            parse_adapter({"peft_type": "LORA"}, odd)
    assert not set(table()["refused"]["methods"]) & set(table()["merged"]["methods"])


def test_every_merged_method_has_a_name() -> None:
    for method in table()["merged"]["methods"]:
        assert str(parse_adapter({"peft_type": method}, {}).summary)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"q.lora_A.weight": A}, "half of an update"),
        ({"q.lora_A.weight": A, "q.lora_B.weight": np.ones((4, 3))}, "do not fit"),
        ({"q.lora_A.weight": np.ones((2, 5)), "q.lora_B.weight": B}, "do not fit"),
        ({"q.lora_A.weight": np.ones((0, 6)), "q.lora_B.weight": np.ones((4, 0))}, "do not fit"),
        ({"q.lora_A.weight": np.ones(6), "q.lora_B.weight": B}, "do not fit"),
        ({"q.lora_A.one.weight": A, "q.lora_A.two.weight": A}, "same part of one update"),
        ({"q.lora_A.weight": A, "q.lora_B.weight": B, "q.lora_B.bias": np.ones(3)}, "do not fit"),
        (
            {"q.lora_A.weight": A, "q.lora_B.weight": B, "q.lora_magnitude_vector": np.ones(5)},
            "do not fit",
        ),
        ({"q.modules_to_save.weight": np.ones((4, 7))}, "do not fit"),
        ({"q.trainable_tokens_delta": np.ones((1, 6))}, "do not fit"),
        ({"q.ia3_l": np.ones((5, 1))}, "do not fit"),
        ({"q.ia3_l": np.array(1.0)}, "do not fit"),
        ({"q.lora_diag": np.ones(2)}, "kind of LoRA that is not known"),
        ({"q.lokr_w1": np.ones((2, 2))}, "LoKr"),
        (
            {
                "q.lora_embedding_A": np.ones((2, 4)),
                "q.lora_embedding_B": np.ones((6, 2)),
                "q.lora_magnitude_vector": np.ones((1, 4)),
            },
            "all of its rows at once",
        ),
    ],
)
def test_tensors(arrays: dict[str, Any], words: str) -> None:
    with pytest.raises(KinprintError, match=words):
        stored(PLAIN, arrays).matched({**BASE, "q.bias": (4,)})


def test_whole_numbers_are_no_weights() -> None:
    with pytest.raises(KinprintError, match="holds I8"):
        adapter("I8").matched(BASE)


def test_two_updates_of_one_weight() -> None:
    arrays = {
        f"{name}.lora_{x}.weight": y for name in ("q", "model.q") for x, y in (("A", A), ("B", B))
    }
    with pytest.raises(KinprintError, match=r"two updates change 'q\.weight'"):
        stored(PLAIN, arrays).matched(BASE)


def test_mlx_without_a_scale() -> None:
    arrays = {"q.lora_a": np.ones((6, 2)), "q.lora_b": np.ones((2, 4))}
    with pytest.raises(KinprintError, match="give no 'scale'"):
        stored({"lora_parameters": {"rank": 2}}, arrays).matched(BASE)


def test_rows_outside_and_arrays_that_are_not_enough() -> None:
    found = adapter()
    update = found.matched(BASE).updates["q.weight"]
    for rows in ((4,), (-1,), range(3, 6)):
        with pytest.raises(SliceOutside):
            needed(update, rows)
    with pytest.raises(ValueError, match="needs 2 arrays"):
        merged_rows(update, range(2), np.zeros((2, 6)), [])
    with pytest.raises(ValueError, match="needs base rows"):
        found.merged(update, range(2), np.zeros((3, 6)))


def test_patterns_of_strangers_end() -> None:
    """Matching backtracks in one call, which nothing can count: only the suite's limit ends it."""
    names = {f"{'a.' * 90}{i}.lora_A.weight": A for i in range(30)}
    patterns = {".*.*b": 2, "[a-z.]+[a.]*c": 3}
    parse_adapter(PLAIN | {"alpha_pattern": patterns}, stored({}, names).specs)


def test_numbers_that_are_none_stay_so_without_a_warning() -> None:
    arrays = {"q.lora_A.weight": A, "q.lora_B.weight": B, "q.lora_magnitude_vector": np.ones(4)}
    found = stored(PLAIN | {"use_dora": True, "lora_alpha": 0}, arrays)
    update = found.matched(BASE).updates["q.weight"]
    assert update.kind == "dora"
    assert np.isnan(found.merged(update, range(1), np.zeros((1, 6)))).all()
