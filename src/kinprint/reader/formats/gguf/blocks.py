"""Quantised GGUF blocks as numbers, through the `gguf` package that owns their layouts.

The package is an extra and slow to import, so it is loaded when the first block is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kinprint import text
from kinprint.errors import BadGguf, DtypeUnknown, MissingExtra
from kinprint.reader.dtypes import GGML

# Decoding needs several temporary arrays of the result's size; a million numbers at a
# time keeps them in a few tens of megabytes however large the tensor.
_AT_ONCE = 1 << 20


def decode_blocks(raw: bytes, dtype: str, file: str) -> npt.NDArray[np.float32]:
    """The numbers in `raw`, whole blocks of the quantised type `dtype`, as one flat array.

    Blocks stand alone, so any few rows of a tensor decode to what they are in the whole.
    """
    form = GGML.get(dtype)
    if form is None:
        raise DtypeUnknown(dtype=dtype, file=file)
    blocks, rest = divmod(len(raw), form.size)
    if rest:
        cause = text.message("cause.gguf.part-block", size=len(raw), dtype=dtype, block=form.size)
        raise BadGguf(file=file, cause=cause)
    quants, kind = _library(dtype, file)
    out = np.empty(blocks * form.block, np.float32)
    data = np.frombuffer(raw, np.uint8)
    step = max(_AT_ONCE // form.block, 1)
    # Scales that are infinite or not a number are the file's business, not a warning's.
    with np.errstate(all="ignore"):
        for start in range(0, blocks, step):
            stop = min(start + step, blocks)
            rows = data[start * form.size : stop * form.size].reshape(1, -1)
            try:
                numbers = quants.dequantize(rows, kind)
            except NotImplementedError:
                raise DtypeUnknown(dtype=dtype, file=file) from None
            out[start * form.block : stop * form.block] = numbers.reshape(-1)
    return out


def _library(dtype: str, file: str) -> tuple[Any, Any]:
    try:
        from gguf import constants, quants
    except ImportError:
        feature = text.message("cause.extra.gguf")
        raise MissingExtra(feature=feature, extra="gguf") from None
    # Newer types are missing from older releases of the package.
    kind = getattr(constants.GGMLQuantizationType, dtype, None)
    if kind is None:
        raise DtypeUnknown(dtype=dtype, file=file)
    return quants, kind
