"""How numbers are written on disk: every type is blocks of so many elements in so many bytes.

One table serves the planner (which needs sizes only) and the decoder. A plain type is a
block of one element; fp4 packs two in a byte, fp6 four in three bytes, and GGUF's
quantised types up to 256 elements with their scales.
"""

from __future__ import annotations

from msgspec import Struct

from kinprint.errors import DtypeUnknown


class Dtype(Struct, frozen=True):
    """A number format: `block` elements take `size` bytes and are decoded together."""

    name: str
    block: int
    size: int

    def nbytes(self, count: int) -> int:
        """Bytes that `count` elements take, the last block being filled up."""
        return -(-count // self.block) * self.size


def _table(*rows: tuple[str, int, int]) -> dict[str, Dtype]:
    return {name: Dtype(name, block, size) for name, block, size in rows}


# Names of safetensors (format specification, 0.8).
PLAIN = _table(
    ("BOOL", 1, 1),
    ("U8", 1, 1),
    ("I8", 1, 1),
    ("U16", 1, 2),
    ("I16", 1, 2),
    ("U32", 1, 4),
    ("I32", 1, 4),
    ("U64", 1, 8),
    ("I64", 1, 8),
    ("F16", 1, 2),
    ("BF16", 1, 2),
    ("F32", 1, 4),
    ("F64", 1, 8),
    ("C64", 1, 8),
    ("C128", 1, 16),  # PyTorch archives only
    ("F8_E4M3", 1, 1),
    ("F8_E5M2", 1, 1),
    ("F8_E4M3FNUZ", 1, 1),
    ("F8_E5M2FNUZ", 1, 1),
    ("F8_E8M0", 1, 1),
    ("F4", 2, 1),
    ("F6_E2M3", 4, 3),
    ("F6_E3M2", 4, 3),
)

# Quantised types of GGUF, from ggml's published block layouts.
GGML = _table(
    ("Q4_0", 32, 18),
    ("Q4_1", 32, 20),
    ("Q5_0", 32, 22),
    ("Q5_1", 32, 24),
    ("Q8_0", 32, 34),
    ("Q8_1", 32, 40),
    ("Q2_K", 256, 84),
    ("Q3_K", 256, 110),
    ("Q4_K", 256, 144),
    ("Q5_K", 256, 176),
    ("Q6_K", 256, 210),
    ("Q8_K", 256, 292),
    ("IQ2_XXS", 256, 66),
    ("IQ2_XS", 256, 74),
    ("IQ3_XXS", 256, 98),
    ("IQ1_S", 256, 50),
    ("IQ4_NL", 32, 18),
    ("IQ3_S", 256, 110),
    ("IQ2_S", 256, 82),
    ("IQ4_XS", 256, 136),
    ("IQ1_M", 256, 56),
    ("TQ1_0", 256, 54),
    ("TQ2_0", 256, 66),
    ("MXFP4", 32, 17),
    ("NVFP4", 64, 36),
    ("Q1_0", 128, 18),
)

_ALL = PLAIN | GGML


def bits_of(name: str) -> int | None:
    """Bits of a number in a format, without those of scales; None where the format is unknown.

    Quantised types of GGUF bear them in their names.
    """
    if name in GGML:
        return int("".join(char if char.isdigit() else " " for char in name).split()[0])
    known = PLAIN.get(name)
    return None if known is None else known.size * 8 // known.block


def dtype_named(name: str, file: str) -> Dtype:
    """The number format called `name`, which `file` uses."""
    try:
        return _ALL[name]
    except KeyError:
        raise DtypeUnknown(dtype=name, file=file) from None
