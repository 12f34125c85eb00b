"""What a whole hub declares: a table of its models, one Parquet file, in place of their cards.

The form is that of the dataset `hub-stats`, a table of all public models as the Hub's interface
lists them. Two of its columns are read: `id`, and `baseModels` with a `relation` and `models`, each
of which has an `id`. It has millions of rows, so it is gone through batch by batch, and of what is
not asked for nothing is kept.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kinprint import text
from kinprint.atlas.encoding import parquet
from kinprint.errors import BadOption, KinprintError, system_cause
from kinprint.lineage.about.claims import Claim, table_claims

_ID, _BASES = "id", "baseModels"
_BATCH = 16_384  # rows that are held at once


def declared_in(place: str, wanted: Collection[str]) -> dict[str, tuple[Claim, ...]]:
    """What a table declares about the origins of models, by their names.

    Parameters
    ----------
    place
        The file: a path, or an address that fsspec can open.
    wanted
        Names of repositories; the others are passed over.
    """
    library = parquet()
    try:
        from fsspec.core import open as open_file

        with open_file(place, "rb") as file:
            return _claims(library.ParquetFile(file), place, wanted)
    except KinprintError:
        raise
    except OSError as error:
        raise _refused(place, system_cause(error)) from None
    except Exception:  # of pyarrow, or of the driver that opens addresses
        raise _refused(place, text.message("cause.declared.no-table")) from None


def _claims(file: Any, place: str, wanted: Collection[str]) -> dict[str, tuple[Claim, ...]]:
    import pyarrow
    from pyarrow import compute

    forms = (
        (_ID, _holds_text, "cause.declared.no-names"),
        (_BASES, _holds_bases, "cause.declared.no-bases"),
    )
    for column, fits, otherwise in forms:
        if column not in file.schema_arrow.names:
            raise _refused(place, text.message("cause.declared.no-column", column=column))
        kind = file.schema_arrow.field(column).type
        if not fits(kind):
            raise _refused(place, text.message(otherwise, column=column, type=str(kind)))
    where = f"{place.rpartition('/')[2]}: {_BASES}"
    names = pyarrow.array(sorted(wanted), pyarrow.string())
    found: dict[str, tuple[Claim, ...]] = {}
    for batch in file.iter_batches(_BATCH, columns=[_ID, _BASES]):
        ids = batch.column(_ID).cast(pyarrow.string())
        for row in batch.filter(compute.is_in(ids, value_set=names)).to_pylist():
            found[row[_ID]] = tuple(table_claims(row[_BASES], where))
    return {name: claims for name, claims in found.items() if claims}


def _holds_text(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _holds_bases(kind: Any) -> bool:
    """Whether a column can tell bases; one of nothing but nulls can, and tells none."""
    from pyarrow import types

    if types.is_null(kind):
        return True
    if not types.is_struct(kind) or kind.get_field_index("models") < 0:
        return False
    models = kind.field("models").type
    if not (types.is_list(models) or types.is_large_list(models)):
        return False
    each = models.value_type
    named = types.is_struct(each) and each.get_field_index("id") >= 0
    return bool(named and _holds_text(each.field("id").type))


def _refused(place: str, cause: text.Message | str) -> BadOption:
    return BadOption(option="declared", value=place, cause=cause)
