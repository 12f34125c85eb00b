"""Checkpoints as state dicts: which of a pickle's values are the model's tensors.

A file saved by `torch.save` holds any nested value. The rule for finding weights in it:

1. The value must be a dictionary. If one of its entries has a name that training programs
   give to the weights (`WRAPPERS`), is a dictionary and leads to a tensor, that entry is
   taken in its place and the rest (optimiser, random state, arguments) is left alone. This
   is done again inside, as DeepSpeed and Megatron nest two.
2. All tensors in the dictionary so found are the model's, those in dictionaries inside it
   under names joined by dots. The wrapper's own name is not part of them.
3. Everything that is no tensor, and tensors in lists, are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from kinprint.reader.formats.torch.records import TensorRecord
from kinprint.reader.formats.torch.window import bad_archive

WRAPPERS = ("state_dict", "model_state_dict", "model_state", "model", "module", "params")
MOST_WRAPPERS = 3
DEEPEST = 32
LONGEST_NAME = 4096


def named_tensors(value: object, file: str) -> dict[str, TensorRecord]:
    """The model's tensors by name, by the rule above."""
    if not isinstance(value, dict):
        raise bad_archive(file, "cause.torch.no-dictionary")
    state = _unwrapped(value)
    tensors: dict[str, TensorRecord] = {}
    for name, tensor in _walk(state):
        if len(name) > LONGEST_NAME:
            raise bad_archive(file, "cause.torch.long-name")
        if name in tensors:
            raise bad_archive(file, "cause.torch.same-name")
        tensors[name] = tensor
    if not tensors:
        raise bad_archive(file, "cause.torch.no-tensors")
    return tensors


def _unwrapped(state: dict[object, object]) -> dict[object, object]:
    for _ in range(MOST_WRAPPERS):
        for name in WRAPPERS:
            inner = state.get(name)
            if isinstance(inner, dict) and next(_walk(inner), None) is not None:
                state = inner
                break
        else:
            break
    return state


def _walk(state: dict[object, object]) -> Iterator[tuple[str, TensorRecord]]:
    """Tensors in order, with dotted names.

    A dictionary that stands in several places is entered once: a pickle of a kilobyte can
    describe one that would take for ever to walk through.
    """
    entered = {id(state)}
    open_: list[tuple[str, Iterator[tuple[object, object]]]] = [("", iter(state.items()))]
    while open_:
        prefix, entries = open_[-1]
        for key, value in entries:
            if isinstance(value, TensorRecord):
                # Names are cut so that one long prefix cannot fill the memory many times.
                yield f"{prefix}{key}"[: LONGEST_NAME + 1], value
            elif isinstance(value, dict) and id(value) not in entered and len(open_) < DEEPEST:
                entered.add(id(value))
                open_.append((f"{prefix}{key}."[: LONGEST_NAME + 1], iter(value.items())))
                break
        else:
            open_.pop()
