"""Where bytes live: one small protocol, and a source for each kind of place."""

from kinprint.source.opening import open_source
from kinprint.source.protocol import Source

__all__ = ["Source", "open_source"]
