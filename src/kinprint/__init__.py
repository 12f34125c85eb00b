"""Was this model derived from that one? Answers from a few megabytes of weights, read in place."""

__version__ = "0.1.0"
