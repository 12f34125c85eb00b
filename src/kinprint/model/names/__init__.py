"""Names as data: the words of tensor names and what they mean, in tables beside this file.

A new architecture is a new entry in a table, so that code never learns a model's name.
"""
