"""Several tensors for one place: one has it, whatever else a file holds and in whatever order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kinprint.model.roles import RoleMap, assign_roles
from kinprint.records import TensorSpec

LAYERS, WIDTH, UNITS, TOKENS = 3, 64, 160, 500
LLAMA: dict[str, object] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": LAYERS,
    "intermediate_size": UNITS, "vocab_size": TOKENS,
}  # fmt: skip
PARTS = {
    "input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,),
    "self_attn.q_proj": (WIDTH, WIDTH), "self_attn.k_proj": (WIDTH // 2, WIDTH),
    "self_attn.v_proj": (WIDTH // 2, WIDTH), "self_attn.o_proj": (WIDTH, WIDTH),
    "mlp.gate_proj": (UNITS, WIDTH), "mlp.up_proj": (UNITS, WIDTH), "mlp.down_proj": (WIDTH, UNITS),
}  # fmt: skip
Shapes = dict[str, tuple[int, ...]]
PREFIXES = (
    "encoder.layers", "decoder.layers", "model.encoder.layers", "transformer.h", "layers",
    "base_model.model.model.layers", "ema.model.layers", "teacher.model.layers", "model2.layers",
    "a.layers", "model.layers_old", "model.language_model.layers", "lm_head.layers",
    "model.embed_tokens.layers", "model.norm.layers", "blk",
)  # fmt: skip


def stack(place: str = "model.layers") -> Shapes:
    return {
        f"{place}.{layer}.{part}.weight": shape
        for layer in range(LAYERS)
        for part, shape in PARTS.items()
    }


def tops(root: str = "model.", head: str = "lm_head.weight") -> Shapes:
    table = (TOKENS, WIDTH)
    return {f"{root}embed_tokens.weight": table, f"{root}norm.weight": (WIDTH,), head: table}


def tiny(shapes: Shapes) -> Shapes:
    return {name: (1,) * len(shape) for name, shape in shapes.items()}


def orders(shapes: Shapes) -> Sequence[list[TensorSpec]]:
    specs = [TensorSpec(name, "BF16", shape, "f", 0, 0) for name, shape in shapes.items()]
    return specs, specs[::-1], sorted(specs, key=lambda spec: spec.name)


def mapped(shapes: Shapes, config: Mapping[str, object] = LLAMA) -> RoleMap:
    """The roles of tensors, which no order of them changes."""
    first, *others = (assign_roles(specs, config) for specs in orders(shapes))
    assert all(other.roles == first.roles for other in others)
    assert all(sorted(map(str, one.warnings)) == sorted(map(str, first.warnings)) for one in others)
    return first


MODEL = stack() | tops()
PLAIN = mapped(MODEL)


def own(found: RoleMap) -> dict[str, object]:
    return {name: found.roles[name] for name in MODEL}


@pytest.mark.parametrize("place", PREFIXES)
def test_tiny_layers_elsewhere_take_nothing_from_the_model(place: str) -> None:
    found = mapped(MODEL | tiny(stack(place)))
    assert own(found) == PLAIN.roles
    assert all(found.roles[name].tower is not None for name in stack(place))
    assert [note.key for note in found.warnings] == ["note.rival-stack"]


@pytest.mark.parametrize("place", PREFIXES)
def test_layers_of_full_size_where_no_loader_looks_are_a_tower_of_their_own(place: str) -> None:
    found = mapped(MODEL | stack(place))
    assert own(found) == PLAIN.roles
    matrices = [name for name in stack(place) if "_proj" in name]
    roles = {found.roles[name].role for name in matrices}
    assert roles == {PLAIN.roles[name].role for name in stack() if "_proj" in name}
    assert None not in {found.roles[name].tower for name in matrices}


def test_a_copy_beside_the_model_keeps_what_belongs_to_it() -> None:
    copy = {f"ema.{name}": shape for name, shape in MODEL.items()}
    found = mapped(MODEL | copy)
    assert own(found) == PLAIN.roles
    assert {found.roles[name].tower for name in copy} == {"ema.*"}
    (note,) = found.warnings
    assert "ema.model.layers" in str(note) and "model.layers" in str(note)


@pytest.mark.parametrize("config", [LLAMA, {}, {"hidden_size": WIDTH}])
def test_tiny_layers_in_the_usual_place_give_way_to_those_that_fit(
    config: Mapping[str, object],
) -> None:
    found = mapped(tiny(stack()) | stack("weights.layers") | tops(), config)
    assert {found.roles[name].tower for name in stack("weights.layers")} == {None}
    assert found.roles["weights.layers.0.self_attn.q_proj.weight"].role == "q"
    assert found.roles["model.layers.0.self_attn.q_proj.weight"].tower == "model.*"
    assert found.roles["model.embed_tokens.weight"].tower is None


def test_more_layers_or_wider_ones_than_configured_do_not_count() -> None:
    wider = {
        name.replace("model.", "a."): tuple(9 * size for size in shape)
        for name, shape in stack().items()
    }
    deeper = {
        f"b.layers.{layer}.{part}.weight": shape
        for layer in range(20)
        for part, shape in PARTS.items()
    }
    found = mapped(MODEL | wider | deeper)
    assert own(found) == PLAIN.roles
    assert [note.key for note in found.warnings] == ["note.rival-stacks"]


def test_towers_of_one_beginning_are_told_apart() -> None:
    found = mapped(MODEL | stack("x.layers") | tiny(stack("x.blocks")))
    assert own(found) == PLAIN.roles
    assert found.roles["x.layers.0.mlp.up_proj.weight"].tower == "x.*"
    assert found.roles["x.blocks.0.mlp.up_proj.weight"].tower == "x.blocks.*"


@pytest.mark.parametrize("size", [1, 2 * WIDTH])
@pytest.mark.parametrize("part", ["qkv_proj", "query", "0.q_proj", "wq"])
def test_another_matrix_of_the_same_meaning_is_known_by_its_name(part: str, size: int) -> None:
    extra = {
        f"model.layers.{layer}.self_attn.{part}.{end}": shape
        for layer in range(LAYERS)
        for end, shape in (("weight", (size, 1 if size == 1 else WIDTH)), ("bias", (size,)))
    }
    found = mapped(MODEL | extra)
    assert own(found) == PLAIN.roles
    assert {found.roles[name].role for name in extra} == {"other", "bias"}
    assert {found.roles[name].detail for name in extra} == {None, "other"}


@pytest.mark.parametrize("length", [1, WIDTH])
@pytest.mark.parametrize("name", ["ln_1", "x.input_layernorm"])
def test_another_norm_is_known_by_its_name(name: str, length: int) -> None:
    extra = {f"model.layers.{layer}.{name}.weight": (length,) for layer in range(LAYERS)}
    found = mapped(MODEL | extra)
    assert own(found) == PLAIN.roles
    assert {found.roles[name].role for name in extra} == {"other"}


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("root", ["", "foo.", "transformer."])
def test_other_tables_and_norms_are_known_by_their_names(root: str, full: bool) -> None:
    extra = tops(root, f"{root}x.lm_head.weight")
    found = mapped(MODEL | (extra if full else tiny(extra)))
    assert own(found) == PLAIN.roles
    assert {found.roles[name].role for name in extra} <= {"other", "norm_other"}
    assert "note.rival-names" in {note.key for note in found.warnings}


def test_next_to_nothing_makes_no_encoder_or_decoder() -> None:
    config = LLAMA | {"model_type": "opt"}
    own_stack = stack("model.decoder.layers")
    plain = mapped(own_stack | tops("model.decoder."), config)
    found = mapped(own_stack | tops("model.decoder.") | tiny(stack("model.encoder.layers")), config)
    assert {name: found.roles[name] for name in plain.roles} == plain.roles


def test_a_vision_tower_is_not_blinded_either() -> None:
    config = {
        "model_type": "llava", "text_config": LLAMA,
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 32},
    }  # fmt: skip
    pictures = {
        f"vision_tower.encoder.layers.{layer}.self_attn.{part}.weight": (32, 32)
        for layer in range(LAYERS)
        for part in ("q_proj", "k_proj", "v_proj", "out_proj")
    }
    text = {f"language_model.{name}": shape for name, shape in MODEL.items()}
    plain = mapped(text | pictures, config)
    decoys = tiny({name.replace("encoder", "x"): shape for name, shape in pictures.items()})
    found = mapped(text | pictures | decoys, config)
    assert {name: found.roles[name] for name in plain.roles} == plain.roles
    assert {found.roles[name].tower for name in decoys} == {"vision_tower.x.*"}


@pytest.mark.parametrize("place", ["vision_tower.{}.layers", "teachers.{}.layers"])
def test_ever_so_many_stacks_make_no_more_than_a_few_towers(place: str) -> None:
    """The largest keeps the places of a tower for itself, whatever lies beside it."""
    many = {
        f"{place.format(at)}.{layer}.{part}.weight": (size, size)
        for at in range(60)
        for size in (32 if at else 48,)
        for layer in range(2)
        for part in ("self_attn.q_proj", "mlp.fc1", "mlp.fc2")
    }
    found = mapped(MODEL | many)
    assert own(found) == PLAIN.roles
    towers = [found.roles[name].tower for name in many]
    assert 4 < len({*towers}) < 12
    first = [name for name in many if found.roles[name].tower == towers[0]]
    assert {name.split(".")[1] for name in first} == {"0"}


@pytest.mark.parametrize("place", ["encoder.stages.{}.layers", "swin.encoder.layers.{}.blocks"])
def test_stages_that_are_counted_are_towers_and_no_rivals(place: str) -> None:
    stages: Shapes = {
        f"{place.format(stage)}.{layer}.{part}.weight": shape
        for stage in range(3)
        for layer in range(2)
        for width in (16 << stage,)
        for part, shape in (("fc1", (4 * width, width)), ("fc2", (width, 4 * width)))
    }
    config: dict[str, object] = {"depths": [2, 2, 2], "hidden_sizes": [16, 32, 64]}
    found = mapped(stages, config)
    towers = {place.rpartition(".")[0].format(stage) + ".*" for stage in range(2)}
    assert {role.tower for role in found.roles.values()} == {None, *towers}
    assert {(str(role.role), role.layer) for role in found.roles.values()} == {
        (role, layer) for role in ("up", "down") for layer in range(2)
    }
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("vision_backbone.featurizer", "vision_backbone.fused_featurizer"),
        ("vision_tower.vision_tower_low", "vision_tower.vision_tower_high"),
        ("model.vision_tower_aux_list.0", "model.vision_tower_aux_list.1"),
        ("visual", "model.sam_model"),
    ],
)
def test_two_encoders_of_one_picture_are_two_towers(first: str, second: str) -> None:
    """The larger one is the tower for pictures, and neither is a rival of the other."""
    config = {"model_type": "openvla", "text_config": LLAMA}
    pictures = {
        f"{root}.{name}": shape
        for root, width in ((first, 48), (second, 32))
        for name, shape in {
            "pos_embed": (9, width), "patch_embed.proj.weight": (width, 3, 2, 2),
            "norm.weight": (width,),
        }.items()
    }  # fmt: skip
    for root, width in ((first, 48), (second, 32)):
        for part, shape in {
            "norm1": (width,), "norm2": (width,), "attn.qkv": (3 * width, width),
            "attn.proj": (width, width), "mlp.fc1": (4 * width, width),
            "mlp.fc2": (width, 4 * width),
        }.items():  # fmt: skip
            pictures |= {f"{root}.blocks.{at}.{part}.weight": shape for at in range(LAYERS)}
    text = {f"language_model.{name}": shape for name, shape in MODEL.items()}
    found = mapped(text | pictures, config)
    towers = {name: found.roles[name].tower for name in pictures}
    assert towers == {name: "vision" if name.startswith(first) else second for name in pictures}
    assert {found.roles[name].detail for name in pictures if "qkv" in name} == {"qkv"}
    assert found.warnings == ()
