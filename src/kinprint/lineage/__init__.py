"""Are two models related? What to read, how parts correspond, tests, and a verdict in the end.

Pure but for `reading`, `opening` and `about`, which read through the reader.
"""
