"""One parser under atheris: `python -m tests.fuzz.instrumented TARGET`, then options of libFuzzer.

Modules of kinprint are instrumented and no others. libFuzzer starts this program again by itself
when it merges. `tests/fuzz/guided.py` is what people call.
"""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack

import atheris

_MOST_MEMORY = 200  # MiB above what is taken before the first input
_SLOWEST = 10  # seconds for one input


def main(name: str, options: list[str]) -> None:
    """Feed a parser with what libFuzzer makes; the first fault ends the process."""
    with ExitStack() as stack:
        with atheris.instrument_imports(include=["kinprint"]):
            from tests.fuzz.guided import opened
            from tests.torture.scene import memory

            seeds, tried = stack.enter_context(opened(name))
            for seed in seeds:  # whatever is loaded late is instrumented too
                tried(seed)
        limits = (f"-rss_limit_mb={(memory() >> 20) + _MOST_MEMORY}", f"-timeout={_SLOWEST}")

        def once(raw: bytes) -> None:
            found = tried(raw)
            if found is not None:
                raise AssertionError(found)

        warnings.simplefilter("error", RuntimeWarning)  # as pytest has it
        program = f"{sys.executable} -m tests.fuzz.instrumented {name}"
        atheris.Setup([program, *limits, *options], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
