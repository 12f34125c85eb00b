"""The version of kinprint, for its own headers, for people and for the package that is built."""

__version__ = "0.1.0"
