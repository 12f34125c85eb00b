"""Commands. Each is a module of its own, loaded only when it is called."""

from kinprint.cli.main import main

__all__ = ["main"]
