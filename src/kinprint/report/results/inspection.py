"""What a model holds: the result of `inspect`."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from kinprint import text
from kinprint.records import Cost
from kinprint.report.results.result import Result
from kinprint.report.schema import (
    AdapterPart,
    FilePart,
    GeometryPart,
    InspectionDocument,
    QuantisationPart,
    TensorPart,
    encode_line,
    plain,
)
from kinprint.report.translation import warning
from kinprint.studies.results import Table

_COLUMNS = (
    "name", "role", "layer", "expert", "tower", "shape", "dtype", "file", "offset", "nbytes"
)  # fmt: skip


class Inspection(Result[InspectionDocument]):
    """A model without its numbers: files, tensors, number formats and dimensions.

    `kinprint.inspect` makes it, from headers and small files alone.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> found = kinprint.inspect(kinprint.demo.FOLDER / "zoo" / "base-a")
    >>> found.geometry.layers, found.format, found.parameters
    (6, 'safetensors', 1631872)
    """

    @property
    def name(self) -> str:
        """The model's name: a repository, a path or an address."""
        return self._document.name

    @property
    def commit(self) -> str | None:
        """The commit that was read, None where the place has no commits."""
        return self._document.commit

    @property
    def format(self) -> str:
        """The format of the weight files."""
        return self._document.format

    @property
    def geometry(self) -> GeometryPart:
        """Its sizes as the configuration gives them, None where it does not say."""
        return self._document.geometry

    @property
    def family(self) -> str:
        """Whose names its tensors bear."""
        return self._document.family

    @property
    def parameters(self) -> int:
        """Numbers in the model; quantised weights count as what they stand for, those in a format
        that is not read as none."""
        return self._document.parameters

    @property
    def codes(self) -> int:
        """Stored numbers of quantised weights in a format that is not read."""
        return self._document.codes

    @property
    def dtypes(self) -> Mapping[str, int]:
        """Number formats with how many stored numbers each holds, most first."""
        return self._document.dtypes

    @property
    def files(self) -> tuple[FilePart, ...]:
        """The weight files."""
        return self._document.files

    @property
    def tensors(self) -> tuple[TensorPart, ...]:
        """All stored tensors: where each lies, how it is written, and what it is."""
        return self._document.tensors

    @property
    def quantisation(self) -> QuantisationPart | None:
        """How the weights say they are quantised."""
        return self._document.quantisation

    @property
    def adapter(self) -> AdapterPart | None:
        """What an adapter adds to which base, if it is one."""
        return self._document.adapter

    @property
    def tokenizer(self) -> str | None:
        """The file that holds the vocabulary; it is not read."""
        return self._document.tokenizer

    @property
    def warnings(self) -> tuple[str, ...]:
        """What about the tensors could not be settled."""
        return self._document.warnings

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on how the model was read."""
        return self._document.notes

    @property
    def labels(self) -> tuple[str, ...]:
        """What the weights say they are not, as replicas do."""
        return self._document.labels

    @property
    def cost(self) -> Cost:
        """What was read, and how long it took."""
        return self._document.read.cost

    @property
    def tables(self) -> Mapping[str, Table]:
        """One table: a row a tensor."""
        rows = tuple(
            (
                one.name, one.role, one.layer, None if one.expert is None else str(one.expert),
                one.tower, " × ".join(map(str, one.shape)), one.dtype, one.file, one.offset,
                one.nbytes,
            )
            for one in self._document.tensors
        )  # fmt: skip
        return {"tensors": Table("tensors", text.words("report.inspect.tensors"), _COLUMNS, rows)}

    def to_json(self) -> bytes:
        """The inspection as the bytes of its JSON file."""
        try:
            return msgspec.json.format(encode_line(self._document), indent=1) + b"\n"
        except UnicodeEncodeError:  # names on a disk may be no text, and are escaped here
            built = msgspec.to_builtins(self._document, enc_hook=plain)
            return json.dumps(built, indent=1).encode("ascii") + b"\n"

    def _warning(self) -> str:
        return warning(self._document, self.language)

    def _in_short(self) -> str:
        from kinprint.report.views.inspection import parameters_say

        return f"{self.name}: {parameters_say(self._document, self.language)}"

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment
        from kinprint.report.views.inspection import inspection_view

        view = inspection_view(self._document, self.language)
        table = Table("groups", text.words("report.inspect.tensors"), view.columns, view.rows)
        traits = [f"{name}: {said}" if name else said for name, said in view.traits]
        told = (*view.labels, *traits, *view.remarks)
        return fragment(view.title, told, table, self.language)
