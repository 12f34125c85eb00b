"""Opening models: headers read, tensors understood, adapters joined to their base."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kinprint.errors import BadAdapter, BadOption, BadReference, SourceError
from kinprint.model.model import ADAPTER_CONFIG, Model
from kinprint.reader.checkpoint import Checkpoint, open_checkpoint
from kinprint.reader.formats.registry import GGUF
from kinprint.reader.jsonfile import parse_object
from kinprint.records import TensorSpec
from kinprint.source.reference import parse_reference
from kinprint.text import message

if TYPE_CHECKING:
    from kinprint.model.adapters import Adapter

_STEMS = ("adapter_model", "adapters")
_FIRST_EXPERTS = ("0", "1")
# Where a base may lie that a file names: on the Hub, and on this machine if the file lies there
# too. An address in a stranger's file is asked by nobody.
_BASES = {True: ("hub", "local"), False: ("hub",)}


def open_model(
    checkpoint: Checkpoint, base: str | None = None, *, few_experts: bool = False
) -> Model:
    """Read the headers of all weight files and say what each tensor is.

    An adapter is opened with its base: the one given, else the one that it names. With
    `few_experts` all but the first two of experts that lie in tensors of their own are left out:
    a mixture has tens of thousands of these, and nobody may ask for them.
    """
    specs = checkpoint.tensors()
    config = adapter_config(checkpoint)
    if config is None:
        if few_experts:
            specs = {name: spec for name, spec in specs.items() if not _is_further_expert(name)}
        model = Model(checkpoint, specs)
        model.components = tuple(map(open_model, checkpoint.components))
        return model
    # Few models are adapters.
    from kinprint.model.adapted import AdaptedModel
    from kinprint.model.adapters import parse_adapter

    adapter = parse_adapter(config, specs)
    under = _open_base(checkpoint, adapter, base)
    return AdaptedModel(Model(under, under.tensors()), checkpoint, adapter)


def need_adapter(models: Iterable[Model], base: str | None, *, pair: bool = False) -> None:
    """Refuse a base that no model stands on: whoever gives one expects that it is looked at.

    Of a `pair` it may have been meant as the base that both were made from.
    """
    if base is not None and not any(one.adapter_checkpoint for one in models):
        told = message("cause.adapter.none-of-two", option="given")
        cause = told if pair else message("cause.adapter.none")
        raise BadOption(option="base", value=base, cause=cause)


def _is_further_expert(name: str) -> bool:
    _, found, rest = name.partition(".experts.")
    number = rest.partition(".")[0]
    return bool(found) and number.isdigit() and number not in _FIRST_EXPERTS


def open_partly(
    checkpoint: Checkpoint,
    shards: Sequence[str],
    wanted: Callable[[TensorSpec], bool] = lambda spec: True,
) -> Model:
    """Say what the tensors of some weight files are, without the headers of the others.

    Those that are not `wanted` are left out: a mixture has tens of thousands.
    """
    specs = checkpoint.tensors_in(shards)
    return Model(checkpoint, {name: spec for name, spec in specs.items() if wanted(spec)})


def open_for_tokens(checkpoint: Checkpoint, base: str | None = None) -> Model:
    """Open a model for its tokenizer: of all weight files only the first is looked at.

    Its header says whether the model is a replica, and holds the tokenizer of a GGUF file. An
    adapter may take the tokenizer of its base.
    """
    if is_adapter(checkpoint):
        return open_model(checkpoint, base)
    return open_partly(checkpoint, checkpoint.shards[:1])


def config_beside(checkpoint: Checkpoint) -> str | None:
    """Where an adapter's configuration lies beside the weights; None where there is none."""
    path = posixpath.join(checkpoint.choice.weights.folder, ADAPTER_CONFIG)
    return path if path in checkpoint.files else None


def may_be_adapter(checkpoint: Checkpoint) -> bool:
    """Whether the list of files leaves open that it is an adapter: told before any header."""
    return checkpoint.format == GGUF or config_beside(checkpoint) is not None


def is_adapter(checkpoint: Checkpoint) -> bool:
    """Whether the weights are an adapter's; headers are read only where files do not tell.

    A GGUF file says so itself. A merged model may keep the configuration of what was merged into
    it, so a configuration counts beside a file of an adapter's name or tensors of such names.
    """
    if not may_be_adapter(checkpoint):
        return False
    if checkpoint.format == GGUF:
        return checkpoint.header(checkpoint.shards[0]).metadata.get("general.type") == "adapter"
    named = checkpoint.choice.weights.stem in _STEMS
    return named or any("lora" in name for name in checkpoint.names())


def adapter_config(checkpoint: Checkpoint) -> Mapping[str, Any] | None:
    """What an adapter says about itself; None for a model of its own."""
    if not is_adapter(checkpoint):
        return None
    path = config_beside(checkpoint)
    if checkpoint.format == GGUF or path is None:
        return checkpoint.header(checkpoint.shards[0]).metadata
    return parse_object(path, checkpoint.read_file(path))


def _open_base(checkpoint: Checkpoint, adapter: Adapter, given: str | None) -> Checkpoint:
    file = checkpoint.shards[0]
    if given is None and adapter.base is None:
        raise BadAdapter(file=file, cause=message("cause.adapter.no-base", option="base"))
    revision = f"@{adapter.revision}" if adapter.revision else ""
    name = given if given is not None else f"{adapter.base}{revision}"
    try:
        if (
            given is None
            and not checkpoint.fetcher.has_recorded(name)
            and parse_reference(name).kind not in _BASES[checkpoint.ref.kind == "local"]
        ):
            elsewhere = message("cause.adapter.base-elsewhere", name=name, option="base")
            raise BadAdapter(file=file, cause=elsewhere)
        return open_checkpoint(name, checkpoint.fetcher)
    except (SourceError, BadReference) as error:
        if given is not None:
            raise
        cause = message("cause.adapter.base-closed", name=name, option="base")
        raise BadAdapter(file=file, cause=cause) from error
