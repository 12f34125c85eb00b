"""Commands. Each is a module of its own, loaded only when it is called."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["main"]

# Python looks for cycles after every 700 new records; a command makes a hundred thousand, keeps
# them to its end, and makes few cycles.
_RECORDS_BETWEEN_SEARCHES = 500_000


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0, 2 or 130, or what `--exit-code` asks for.

    Whatever goes wrong, even in loading or in saying what went wrong, ends with 2: with
    `--exit-code` Python's own 1 would say that two models are related.
    """
    import gc
    import os

    gc.set_threshold(_RECORDS_BETWEEN_SEARCHES)
    code = 2
    try:
        from kinprint.cli.root import run

        code = run(arguments)
    except KeyboardInterrupt:
        code = 130
    except BaseException as error:
        os.write(2, f"kinprint: {type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(code)  # threads may still wait for a slow server, and nobody waits for them
