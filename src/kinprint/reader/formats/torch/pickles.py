"""Pickles read without being run: an interpreter that knows plain data and a few names.

A pickle is a program for a stack machine whose dangerous instructions import and call
things. Here the opcodes only move plain values about; a global is never imported but
looked up in a list of names that are known to be harmless, and "calling" one means asking
that list what plain value it stands for. Everything else ends the reading. Opcodes are
told apart by the standard library's `pickletools`, which runs nothing either.

Memory and time grow with the length of the pickle and no faster. Two things that would
let a short pickle do more are left out: values are never copied (a set stays the list of
its members), and only strings and small whole numbers are dictionary keys, since others
can be made to collide; entries with other keys are dropped.
"""

from __future__ import annotations

import pickletools
from collections import OrderedDict
from collections.abc import Callable
from typing import BinaryIO, Protocol

from msgspec import Struct

from kinprint.errors import BadPickle, KinprintError, Malformed
from kinprint.text import message

MOST_OPCODES = 4_000_000
DEEPEST = 1_000  # marks open at the same time: how deep values may nest while being built
NEWEST_PROTOCOL = 5
_SMALL = 1 << 60  # below it, whole numbers hash to themselves

_Table = dict[str, Callable[["_Machine", object], None]]


class Symbol(Struct, frozen=True):
    """A harmless global: its name, standing for a thing that is never imported."""

    name: str


class Opaque(Struct, frozen=True):
    """A value that nobody needs, of which only the kind is kept."""

    kind: str


class Harmless(Protocol):
    """Which globals a pickle may name, and which plain values stand for using them.

    Each method returns that value, or raises a Malformed that says what is wrong with the
    request.
    """

    def find(self, name: str) -> Symbol:
        """The symbol of the global `name`, module and name joined by a dot."""

    def call(self, symbol: Symbol, arguments: tuple[object, ...]) -> object:
        """What calling the global would have given."""

    def persistent(self, key: object) -> object:
        """What the persistent id `key` refers to."""


def load(stream: BinaryIO, file: str, harmless: Harmless) -> object:
    """The value that the pickle at the stream's position describes, as plain data.

    Raises BadPickle for anything that is not plain data or on the list. The stream is
    left just behind the pickle, where old PyTorch files go on with the next one.
    """
    machine = _Machine(harmless)
    opcodes = pickletools.genops(stream)
    try:
        for _ in range(MOST_OPCODES):
            # Whatever the tokeniser has against the bytes, they are no pickle.
            try:
                opcode, argument, position = next(opcodes)
            except KinprintError:
                raise
            except Exception as error:
                raise Malformed("cause.pickle.damaged", detail=shown(str(error))) from None
            if opcode.name == "STOP":
                return machine.result()
            step = _STEPS.get(opcode.name)
            if step is None:
                raise Malformed("cause.pickle.instruction", name=opcode.name)
            machine.position = position or 0
            step(machine, argument)
    except Malformed as error:
        raise BadPickle(file=file, cause=error.cause) from None
    except ValueError as error:
        cause = message("cause.pickle.damaged", detail=shown(str(error)))
        raise BadPickle(file=file, cause=cause) from None
    raise BadPickle(file=file, cause=message("cause.pickle.too-long", most=MOST_OPCODES))


def shown(text: str) -> str:
    """A stranger's text made fit for a message: short, and without control characters."""
    clean = "".join(letter if letter.isprintable() else "?" for letter in text[:81])
    return clean if len(clean) <= 80 else clean[:79] + "…"


class _Machine:
    """Stack, marks and memo of the pickle machine (PEP 307, PEP 3154, PEP 574)."""

    def __init__(self, harmless: Harmless) -> None:
        self.harmless = harmless
        self.position = 0
        self.stack: list[object] = []
        self.below: list[list[object]] = []  # stacks set aside by marks
        self.memo: dict[int, object] = {}

    def result(self) -> object:
        """The value left when the pickle stops."""
        value = self.pop()
        if self.stack or self.below:
            raise Malformed("cause.pickle.values-left")
        return value

    def push(self, value: object) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def pop(self) -> object:
        """Take the topmost value."""
        if not self.stack:
            raise Malformed("cause.pickle.empty-stack", position=self.position)
        return self.stack.pop()

    def top(self, kind: type | tuple[type, ...]) -> object:
        """The topmost value, which must be of `kind`."""
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise Malformed("cause.pickle.no-container", position=self.position)
        return self.stack[-1]

    def mark(self) -> None:
        """Open a group of values."""
        if len(self.below) >= DEEPEST:
            raise Malformed("cause.pickle.too-deep", most=DEEPEST)
        self.below.append(self.stack)
        self.stack = []

    def group(self) -> list[object]:
        """Take all values since the last mark, and the mark."""
        if not self.below:
            raise Malformed("cause.pickle.no-group", position=self.position)
        values, self.stack = self.stack, self.below.pop()
        return values

    def call(self, function: object, arguments: object) -> object:
        """The value that stands for calling a harmless global."""
        if not isinstance(function, Symbol):
            raise Malformed("cause.pickle.calls-unlisted")
        if not isinstance(arguments, tuple):
            raise Malformed("cause.pickle.no-arguments", name=function.name)
        return self.harmless.call(function, arguments)


def set_items(target: object, keys_and_values: list[object]) -> None:
    """Put pairs into a dictionary, leaving out those whose keys are not to be trusted."""
    if not isinstance(target, dict) or len(keys_and_values) % 2:
        raise Malformed("cause.pickle.half-pair")
    for index in range(0, len(keys_and_values), 2):
        key = keys_and_values[index]
        if isinstance(key, str) or (isinstance(key, int) and -_SMALL < key < _SMALL):
            target[key] = keys_and_values[index + 1]


def _push(machine: _Machine, argument: object) -> None:
    machine.push(argument)


def _constant(value: object) -> Callable[[_Machine, object], None]:
    return lambda machine, _: machine.push(value)


def _ignore(machine: _Machine, argument: object) -> None:
    pass


def _protocol(machine: _Machine, argument: object) -> None:
    if not isinstance(argument, int) or argument > NEWEST_PROTOCOL:
        raise Malformed("cause.pickle.protocol", protocol=argument, newest=NEWEST_PROTOCOL)


def _pop(machine: _Machine, _: object) -> None:
    # As in the standard library: with nothing above the mark, the mark itself goes.
    if machine.stack or not machine.below:
        machine.pop()
    else:
        machine.group()


def _dup(machine: _Machine, _: object) -> None:
    machine.push(machine.top(object))


def _append(machine: _Machine, _: object) -> None:
    value = machine.pop()
    target = machine.top(list)
    assert isinstance(target, list)
    target.append(value)


def _appends(machine: _Machine, _: object) -> None:
    values = machine.group()
    target = machine.top(list)
    assert isinstance(target, list)
    target.extend(values)


def _tuple_of(count: int) -> Callable[[_Machine, object], None]:
    def step(machine: _Machine, _: object) -> None:
        values = [machine.pop() for _ in range(count)]
        machine.push(tuple(reversed(values)))

    return step


def _dict(machine: _Machine, _: object) -> None:
    target: dict[object, object] = {}
    set_items(target, machine.group())
    machine.push(target)


def _setitem(machine: _Machine, _: object) -> None:
    value, key = machine.pop(), machine.pop()
    set_items(machine.top(dict), [key, value])


def _setitems(machine: _Machine, _: object) -> None:
    pairs = machine.group()
    set_items(machine.top(dict), pairs)


def _get(machine: _Machine, argument: object) -> None:
    if not isinstance(argument, int) or argument not in machine.memo:
        raise Malformed("cause.pickle.not-kept", position=machine.position)
    machine.push(machine.memo[argument])


def _put(machine: _Machine, argument: object) -> None:
    if not isinstance(argument, int) or not 0 <= argument < _SMALL:
        raise Malformed("cause.pickle.large-number", position=machine.position)
    machine.memo[argument] = machine.top(object)


def _memoize(machine: _Machine, _: object) -> None:
    machine.memo[len(machine.memo)] = machine.top(object)


def _global(machine: _Machine, argument: object) -> None:
    machine.push(machine.harmless.find(str(argument).replace(" ", ".", 1)))


def _stack_global(machine: _Machine, _: object) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise Malformed("cause.pickle.nameless-global")
    machine.push(machine.harmless.find(f"{module}.{name}"))


def _reduce(machine: _Machine, _: object) -> None:
    arguments, function = machine.pop(), machine.pop()
    machine.push(machine.call(function, arguments))


def _newobj_ex(machine: _Machine, _: object) -> None:
    if machine.pop() != {}:
        raise Malformed("cause.pickle.named-arguments")
    _reduce(machine, None)


def _inst(machine: _Machine, argument: object) -> None:
    symbol = machine.harmless.find(str(argument).replace(" ", ".", 1))
    machine.push(machine.call(symbol, tuple(machine.group())))


def _obj(machine: _Machine, _: object) -> None:
    values = machine.group()
    if not values:
        raise Malformed("cause.pickle.no-class")
    machine.push(machine.call(values[0], tuple(values[1:])))


def _build(machine: _Machine, _: object) -> None:
    # Attributes of a state dict (its `_metadata`): looked at by nobody, so not kept.
    state = machine.pop()
    if type(machine.top(object)) is not OrderedDict or not isinstance(state, dict):
        raise Malformed("cause.pickle.inner-state")


def _extension(machine: _Machine, argument: object) -> None:
    raise Malformed("cause.pickle.extension", number=argument)


def _persistent(machine: _Machine, argument: object) -> None:
    machine.push(machine.harmless.persistent(argument))


def _binpersid(machine: _Machine, _: object) -> None:
    machine.push(machine.harmless.persistent(machine.pop()))


_STEPS: _Table = {
    "PROTO": _protocol,
    "FRAME": _ignore,
    "MARK": lambda machine, _: machine.mark(),
    "POP": _pop,
    "POP_MARK": lambda machine, _: _ignore(machine, machine.group()),
    "DUP": _dup,
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_SET": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "APPEND": _append,
    "APPENDS": _appends,
    "ADDITEMS": _appends,
    "LIST": lambda machine, _: machine.push(machine.group()),
    "FROZENSET": lambda machine, _: machine.push(machine.group()),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.group())),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "DICT": _dict,
    "SETITEM": _setitem,
    "SETITEMS": _setitems,
    "MEMOIZE": _memoize,
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
    "NEWOBJ_EX": _newobj_ex,
    "INST": _inst,
    "OBJ": _obj,
    "BUILD": _build,
    "PERSID": _persistent,
    "BINPERSID": _binpersid,
}
_STEPS |= dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _get)
_STEPS |= dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _put)
_STEPS |= dict.fromkeys(("EXT1", "EXT2", "EXT4"), _extension)
_STEPS |= dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), _push)
_STEPS |= dict.fromkeys(("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"), _push)
_STEPS |= dict.fromkeys(("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), _push)
_STEPS |= dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"), _push)
