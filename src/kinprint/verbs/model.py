"""A model by meaning: towers, layers and roles, whatever its tensors are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from kinprint import text
from kinprint.errors import TensorUnknown, printable
from kinprint.model.model import Model as UnderstoodModel
from kinprint.model.model import Reading, read_all, wants_of
from kinprint.model.places import Address, Place
from kinprint.records import Cost, Slice
from kinprint.verbs.reader import Reader, fetcher_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kinprint.model.geometry import Geometry
    from kinprint.reader.decode import Array

Rows = range | tuple[int, ...]


class Tensor(Struct, frozen=True):
    """One tensor of a model, by what it is.

    Attributes
    ----------
    role : str
        What it does: "q", "k", "v", "o", "gate", "up", "down", "norm_in", "embed" and so on, with
        ".bias" for biases. A fused tensor counts as its parts.
    layer : int or None
        The number of its layer, None outside the layers.
    expert : int or None
        The number of its expert in a mixture.
    tower : str
        The stack that it belongs to, empty for the only stack of a text model.
    shape : tuple of int or None
        Outputs by inputs, whichever way it is stored; None where only reading tells.
    name : str
        The stored tensor that holds it.
    dtype : str
        The number format it is stored in.
    file : str
        The weight file that holds it.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> model = kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a")
    >>> model.tensors(role="q", layer=3)[0].shape
    (128, 128)
    """

    role: str
    layer: int | None
    expert: int | None
    tower: str
    shape: tuple[int, ...] | None
    name: str
    dtype: str
    file: str


class Model:
    """A model whose tensors are asked for by meaning, and come as rows of floats.

    `kinprint.open` makes it. Headers are read when it is opened, numbers when they are asked
    for, and no more of them than needed. Fused, transposed, stacked, quantised or adapted: what
    lies on disk is turned into the matrix that the role means, outputs first.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> with kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a") as model:
    ...     norm = model.read("norm_in", layer=2)
    ...     rows = model.read("down", layer=2, rows=range(4))
    >>> norm.shape, rows.shape
    ((128,), (4, 352))
    """

    def __init__(
        self, model: UnderstoodModel, reader: Reader, *, owned: bool, language: str = "en"
    ) -> None:
        self._model, self._reader, self._owned, self._language = model, reader, owned, language

    @property
    def name(self) -> str:
        """Its name: a repository, a path or an address."""
        return self._model.name

    @property
    def commit(self) -> str:
        """The commit that is read, empty where the place has no commits."""
        return self._model.checkpoint.ref.commit

    @property
    def format(self) -> str:
        """The format of the weight files: "safetensors", "gguf" or "torch"."""
        return self._model.checkpoint.format

    @property
    def geometry(self) -> Geometry:
        """Its sizes as the configuration gives them, None where it does not say."""
        return self._model.geometry

    @property
    def towers(self) -> tuple[str, ...]:
        """Stacks of layers by name; a text model has one, called ""."""
        return self._model.stacks

    @property
    def roles(self) -> tuple[str, ...]:
        """All roles that its tensors have."""
        return tuple(sorted({address.role for address in self._model.places}))

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on how the model was read."""
        return tuple(map(str, self._model.checkpoint.notes))

    @property
    def labels(self) -> tuple[str, ...]:
        """What the weights say they are not, as replicas do."""
        return tuple(map(str, self._model.checkpoint.labels))

    @property
    def cost(self) -> Cost:
        """What its reader has read so far."""
        return self._reader.cost

    def layers(self, tower: str = "") -> tuple[int, ...]:
        """Numbers of the layers of a tower.

        Parameters
        ----------
        tower : str
            One of `towers`.

        Returns
        -------
        tuple of int
            Empty for a tower that the model does not have.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a").layers()
        (0, 1, 2, 3, 4, 5)
        """
        return self._model.layers(tower)

    def tensors(
        self,
        role: str | None = None,
        layer: int | None = None,
        *,
        expert: int | None = None,
        tower: str | None = None,
    ) -> tuple[Tensor, ...]:
        """Tensors by meaning: all of them, or those that fit what is given.

        Parameters
        ----------
        role, layer, expert, tower : optional
            What the tensors must have; None takes any.

        Returns
        -------
        tuple of Tensor
            In the order of towers, layers, roles and experts.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> model = kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a")
        >>> [tensor.name for tensor in model.tensors("k", layer=0)]
        ['model.layers.0.self_attn.k_proj.weight']
        """
        wanted = {"role": role, "layer": layer, "expert": expert, "tower": tower}
        asked = {name: value for name, value in wanted.items() if value is not None}
        return tuple(
            _tensor(place)
            for address, place in sorted(self._model.places.items(), key=lambda one: _order(one[0]))
            if all(getattr(address, name) == value for name, value in asked.items())
        )

    def read(
        self,
        role: str,
        layer: int | None = None,
        *,
        expert: int | None = None,
        tower: str = "",
        rows: Rows | None = None,
    ) -> NDArray[np.float32]:
        """The numbers of one tensor, as the matrix that its role means.

        Parameters
        ----------
        role : str
            One of `roles`.
        layer, expert : int, optional
            Which layer and expert; None for what lies outside them.
        tower : str
            One of `towers`.
        rows : range or tuple of int, optional
            The rows (outputs) to read; all of them if None.

        Returns
        -------
        numpy.ndarray
            float32, a vector or a matrix with outputs first.

        Raises
        ------
        TensorUnknown
            The model has no such tensor.
        BadQuantisation
            Its numbers cannot be had.
        BudgetExceeded
            Reading it would cost more than allowed.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> model = kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a")
        >>> model.read("norm_final").shape
        (128,)
        """
        (place,) = self._places([Address(role, layer, expert, tower)])
        (found,) = read_all([self._model.reading(place, rows)])
        return found

    def read_all(
        self, tensors: Sequence[Tensor], rows: Rows | None = None
    ) -> list[NDArray[np.float32]]:
        """The numbers of several tensors, read in one sweep.

        Parameters
        ----------
        tensors : sequence of Tensor
            What `tensors` gave.
        rows : range or tuple of int, optional
            The rows to read of each; all of them if None.

        Returns
        -------
        list of numpy.ndarray
            One array a tensor, in the same order.

        Raises
        ------
        TensorUnknown, BadQuantisation, BudgetExceeded
            As for `read`.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> model = kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a")
        >>> len(model.read_all(model.tensors("norm_in")))
        6
        """
        return list(read_all(self._readings(tensors, rows)))

    def plan(self, tensors: Sequence[Tensor], rows: Rows | None = None) -> Cost:
        """What `read_all` would cost; nothing is read.

        Parameters
        ----------
        tensors, rows
            As for `read_all`.

        Returns
        -------
        Cost
            Bytes and requests, none for files on this machine.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> model = kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a")
        >>> model.plan(model.tensors("norm_in")).bytes
        0
        """
        plans = fetcher_of(self._reader).plan(wants_of(self._readings(tensors, rows)))
        return sum((plan.cost for plan in plans), Cost())

    def read_stored(self, name: str, rows: Rows | None = None, *, as_stored: bool = False) -> Array:
        """The numbers of a tensor by its stored name, in the shape it is stored in.

        Parameters
        ----------
        name : str
            The name in the weight files.
        rows : range or tuple of int, optional
            The rows to read, where the last axis gives the columns; all of them if None.
        as_stored : bool
            Whether to keep short number formats such as bfloat16, not widened to float32.

        Returns
        -------
        numpy.ndarray
            The numbers.

        Raises
        ------
        TensorUnknown
            The model has no tensor of that name.
        BudgetExceeded
            Reading it would cost more than allowed.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> model = kinprint.open(kinprint.demo.FOLDER / "zoo" / "base-a")
        >>> model.read_stored("model.norm.weight").dtype
        dtype('float32')
        """
        checkpoint = self._model.checkpoint
        (spec,) = checkpoint.tensors([name]).values()
        (found,) = checkpoint.read([Slice(spec, rows)], as_stored=as_stored)
        return found

    def close(self) -> None:
        """Begin nothing more, unless it was opened with somebody else's reader."""
        if self._owned:
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        count = len(self._model.places)
        return f"<Model {printable(self.name)}: {self.format}, {count} tensors>"

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import tree

        return tree(self.name, self._branches(), self._language)

    def _branches(self) -> Iterator[tuple[str, list[str]]]:
        """What the tree shows: one branch a layer, one leaf a tensor."""
        branches: dict[str, list[str]] = {}
        for one in self.tensors():
            if one.layer is None:
                title = text.say("report.tree.outside", self._language)
            else:
                title = text.say("report.tree.layer", self._language, layer=one.layer)
            title = f"{one.tower} {title}".strip()
            shape = "?" if one.shape is None else " × ".join(map(str, one.shape))
            expert = "" if one.expert is None else f" {one.expert}"
            branches.setdefault(title, []).append(f"{one.role}{expert}  {shape}  {one.dtype}")
        yield from branches.items()

    def _readings(self, tensors: Sequence[Tensor], rows: Rows | None) -> list[Reading]:
        places = self._places(
            [Address(one.role, one.layer, one.expert, one.tower) for one in tensors]
        )
        return [self._model.reading(place, rows) for place in places]

    def _places(self, addresses: Sequence[Address]) -> list[Place]:
        found: list[Place] = []
        for address, place in zip(addresses, self._model.locate(addresses), strict=True):
            if place is None:
                known = {str(one): None for one in self._model.places}
                from difflib import get_close_matches

                near = get_close_matches(str(address), known, n=1)
                raise TensorUnknown(
                    name=self.name, tensor=str(address), near=near[0] if near else "–"
                )
            found.append(place)
        return found


def _tensor(place: Place) -> Tensor:
    address, spec = place.address, place.weight.spec
    return Tensor(
        role=address.role,
        layer=address.layer,
        expert=address.expert,
        tower=address.tower,
        shape=place.shape,
        name=place.weight.name,
        dtype=spec.dtype,
        file=spec.file,
    )


def _order(address: Address) -> tuple[str, int, str, int]:
    layer = -1 if address.layer is None else address.layer
    expert = -1 if address.expert is None else address.expert
    return address.tower, layer, address.role, expert
