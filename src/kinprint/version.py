"""The version of kinprint, for its own headers and for people; kept equal to pyproject.toml."""

__version__ = "0.1.0"
