"""What PyTorch's pickles may say: the harmless globals, and the records they stand for.

The list follows PyTorch's own for `torch.load(weights_only=True)`
(torch/_weights_only_unpickler.py), less what has no use in reading weights.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct

from kinprint.errors import Malformed
from kinprint.reader.dtypes import PLAIN
from kinprint.reader.formats.torch.pickles import Opaque, Symbol, set_items, shown
from kinprint.text import message

MOST_DIMENSIONS = 64  # of a tensor in PyTorch
_LARGEST = 1 << 62
_MOST_PAIRS = 200_000

# Storage classes and dtypes by the names of reader/dtypes.py.
STORAGES = {
    "torch.FloatStorage": "F32",
    "torch.DoubleStorage": "F64",
    "torch.HalfStorage": "F16",
    "torch.BFloat16Storage": "BF16",
    "torch.LongStorage": "I64",
    "torch.IntStorage": "I32",
    "torch.ShortStorage": "I16",
    "torch.CharStorage": "I8",
    "torch.ByteStorage": "U8",
    "torch.BoolStorage": "BOOL",
    "torch.ComplexFloatStorage": "C64",
    "torch.ComplexDoubleStorage": "C128",
}
UNTYPED = ("torch.storage.UntypedStorage", "torch.UntypedStorage")
DTYPES = {
    "torch.float32": "F32",
    "torch.float64": "F64",
    "torch.float16": "F16",
    "torch.bfloat16": "BF16",
    "torch.int64": "I64",
    "torch.int32": "I32",
    "torch.int16": "I16",
    "torch.int8": "I8",
    "torch.uint8": "U8",
    "torch.uint16": "U16",
    "torch.uint32": "U32",
    "torch.uint64": "U64",
    "torch.bool": "BOOL",
    "torch.complex64": "C64",
    "torch.complex128": "C128",
    "torch.float8_e4m3fn": "F8_E4M3",
    "torch.float8_e5m2": "F8_E5M2",
    "torch.float8_e4m3fnuz": "F8_E4M3FNUZ",
    "torch.float8_e5m2fnuz": "F8_E5M2FNUZ",
    "torch.float8_e8m0fnu": "F8_E8M0",
}
# Dtypes that may stand in a checkpoint's settings but not in a tensor that is to be read.
_OTHER_DTYPES = ("torch.complex32", "torch.float4_e2m1fn_x2")

_REBUILD = "torch._utils._rebuild_tensor"
_REBUILD_V2 = "torch._utils._rebuild_tensor_v2"
_REBUILD_V3 = "torch._utils._rebuild_tensor_v3"
_TENSOR_MAKERS = (_REBUILD, _REBUILD_V2, _REBUILD_V3)
_PARAMETER = "torch._utils._rebuild_parameter"
_PARAMETER_STATE = "torch._utils._rebuild_parameter_with_state"
_FROM_TYPE = "torch._tensor._rebuild_from_type_v2"
_TENSOR_TYPES = (
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.nn.parameter.Buffer",
)
_ORDERED, _COUNTER = "collections.OrderedDict", "collections.Counter"
_SETS = ("builtins.set", "builtins.frozenset")
# Plain values that no one asks for: bytes are written as `_codecs.encode(text, "latin1")`.
_UNNEEDED = (
    "_codecs.encode",
    "builtins.bytes",
    "builtins.bytearray",
    "builtins.complex",
    "torch.device",
    "torch.serialization._get_layout",
)
_SIZE = "torch.Size"
_HARMLESS = {
    *STORAGES,
    *UNTYPED,
    *DTYPES,
    *_OTHER_DTYPES,
    *_TENSOR_MAKERS,
    _PARAMETER,
    _PARAMETER_STATE,
    _FROM_TYPE,
    *_TENSOR_TYPES,
    _ORDERED,
    _COUNTER,
    *_SETS,
    *_UNNEEDED,
    _SIZE,
}
_UNREADABLE = {
    "torch._utils._rebuild_qtensor": "cause.pickle.holds.quantised",
    "torch.QInt8Storage": "cause.pickle.holds.quantised",
    "torch.QUInt8Storage": "cause.pickle.holds.quantised",
    "torch.QInt32Storage": "cause.pickle.holds.quantised",
    "torch.QUInt4x2Storage": "cause.pickle.holds.quantised",
    "torch.QUInt2x4Storage": "cause.pickle.holds.quantised",
    "torch._utils._rebuild_sparse_tensor": "cause.pickle.holds.sparse",
    "torch._utils._rebuild_sparse_csr_tensor": "cause.pickle.holds.sparse",
    "torch._utils._rebuild_nested_tensor": "cause.pickle.holds.nested",
    "torch._utils._rebuild_wrapper_subclass": "cause.pickle.holds.subclass",
    "torch._utils._rebuild_meta_tensor_no_storage": "cause.pickle.holds.meta",
    "torch._utils._rebuild_device_tensor_from_numpy": "cause.pickle.holds.device-numpy",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": "cause.pickle.holds.device-copy",
}


class StorageRecord(Struct, frozen=True):
    """A run of numbers in the file, of which a tensor is a view.

    `dtype` is None for bytes without a type. All sizes are in bytes: `nbytes` of the whole
    storage, and `start` and `room` of the part that this reference gives access to.
    """

    key: str
    dtype: str | None
    numel: int
    nbytes: int
    start: int
    room: int


class TensorRecord(Struct, frozen=True):
    """A tensor as its pickle describes it; offset and strides count elements."""

    storage: StorageRecord
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class TorchNames:
    """The harmless globals of PyTorch's pickles, for `pickles.load`.

    `storages` collects what the pickle refers to: in old files their sizes are the only
    way to tell where each one lies.
    """

    def __init__(self) -> None:
        self.storages: dict[str, StorageRecord] = {}
        self._pairs = 0

    def find(self, name: str) -> Symbol:
        """The symbol of a harmless global; says no to all others."""
        modern = name.replace("__builtin__.", "builtins.", 1)  # Python 2's name
        if modern in _HARMLESS:
            return Symbol(modern)
        if name in _UNREADABLE:
            raise Malformed(_UNREADABLE[name])
        raise Malformed("cause.pickle.global", name=shown(name))

    def call(self, symbol: Symbol, arguments: tuple[object, ...]) -> object:
        """The plain value or record that calling a harmless global stands for."""
        name = symbol.name
        if name in _TENSOR_MAKERS:
            return _tensor(name, arguments)
        if name in (_PARAMETER, _PARAMETER_STATE):
            if arguments and isinstance(arguments[0], TensorRecord):
                return arguments[0]
            raise Malformed("cause.pickle.no-parameter")
        if name == _FROM_TYPE:
            return _typed(arguments)
        if name in (_ORDERED, _COUNTER):
            return self._dictionary(arguments)
        if name in _SETS:
            return arguments[0] if arguments and isinstance(arguments[0], list) else []
        if name == _SIZE:
            return _whole_numbers(arguments[0] if arguments else (), "cause.pickle.what.size")
        if name in _UNNEEDED:
            return Opaque(name)
        raise Malformed("cause.pickle.only-a-name", name=name)

    def persistent(self, key: object) -> StorageRecord:
        """The storage that a persistent id refers to."""
        if not isinstance(key, tuple) or len(key) not in (5, 6) or key[0] != "storage":
            raise Malformed("cause.pickle.no-storage")
        kind, name, numel = key[1], key[2], key[4]
        if not isinstance(kind, Symbol) or not (kind.name in STORAGES or kind.name in UNTYPED):
            raise Malformed("cause.pickle.unknown-storage")
        if not isinstance(name, str):
            raise Malformed("cause.pickle.nameless-storage")
        dtype = STORAGES.get(kind.name)
        size = PLAIN[dtype].size if dtype else 1
        nbytes = _whole(numel, "cause.pickle.what.storage-size") * size
        start, room = _viewed(key[5] if len(key) == 6 else None, size, nbytes)
        record = StorageRecord(name, dtype, nbytes // size, nbytes, start, room)
        if self.storages.setdefault(name, record).nbytes != nbytes:
            raise Malformed("cause.pickle.two-sizes", name=shown(name))
        return record

    def _dictionary(self, arguments: tuple[object, ...]) -> OrderedDict[object, object]:
        made: OrderedDict[object, object] = OrderedDict()
        source = arguments[0] if arguments else []
        if not isinstance(source, list | dict):
            raise Malformed("cause.pickle.dictionary-no-list")
        # Python 2 wrote a list of pairs. One list may be named again and again, so what is
        # copied counts.
        self._pairs += len(source)
        if self._pairs > _MOST_PAIRS:
            raise Malformed("cause.pickle.endless-copies")
        for pair in source.items() if isinstance(source, dict) else source:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise Malformed("cause.pickle.dictionary-no-pairs")
            set_items(made, list(pair))
        return made


def _tensor(maker: str, arguments: tuple[object, ...]) -> TensorRecord:
    # (storage, offset, size, strides), v2: + (requires_grad, hooks, metadata or nothing),
    # v3: + (requires_grad, hooks, dtype, metadata or nothing)
    required = {_REBUILD: 4, _REBUILD_V2: 6, _REBUILD_V3: 7}[maker]
    if len(arguments) < required or not isinstance(arguments[0], StorageRecord):
        raise Malformed("cause.pickle.part-tensor")
    storage = arguments[0]
    dtype = storage.dtype
    if maker == _REBUILD_V3:
        kind = arguments[6]
        if not isinstance(kind, Symbol) or kind.name not in DTYPES:
            named = kind.name if isinstance(kind, Symbol) else message("cause.pickle.no-dtype")
            raise Malformed("cause.pickle.unknown-dtype", dtype=named)
        dtype = DTYPES[kind.name]
    if dtype is None:
        raise Malformed("cause.pickle.untyped")
    if len(arguments) > required:
        _check_metadata(arguments[required])
    shape = _whole_numbers(arguments[2], "cause.pickle.what.shape")
    strides = _whole_numbers(arguments[3], "cause.pickle.what.strides")
    if len(shape) != len(strides):
        raise Malformed("cause.pickle.other-strides")
    return TensorRecord(
        storage, dtype, _whole(arguments[1], "cause.pickle.what.offset"), shape, strides
    )


def _typed(arguments: tuple[object, ...]) -> TensorRecord:
    """A tensor that carried attributes: (maker, class, the maker's arguments, attributes)."""
    match arguments:
        case (Symbol(maker), Symbol(kind), tuple(inner), _) if kind in _TENSOR_TYPES:
            if maker in _TENSOR_MAKERS:
                return _tensor(maker, inner)
    raise Malformed("cause.pickle.holds.subclass")


def _check_metadata(metadata: object) -> None:
    if metadata and isinstance(metadata, dict) and (metadata.get("conj") or metadata.get("neg")):
        raise Malformed("cause.pickle.negative")


def _viewed(view: object, size: int, nbytes: int) -> tuple[int, int]:
    """Start and length in bytes of a view on a storage, as files before 2017 had them."""
    if view is None:
        return 0, nbytes
    if not isinstance(view, tuple) or len(view) != 3:
        raise Malformed("cause.pickle.odd-view")
    start, room = (_whole(part, "cause.pickle.what.view") * size for part in view[1:])
    if start + room > nbytes:
        raise Malformed("cause.pickle.view-beyond")
    return start, room


def _whole(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
        raise Malformed("cause.pickle.no-number", what=message(what))
    return value


def _whole_numbers(values: object, what: str) -> tuple[int, ...]:
    if not isinstance(values, tuple | list) or len(values) > MOST_DIMENSIONS:
        raise Malformed("cause.pickle.no-tuple", what=message(what))
    return tuple(_whole(value, what) for value in values)
