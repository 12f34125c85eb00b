"""What the verbs give: results that show themselves, and become files, tables and pictures.

A result is a document and a language to speak. What is computed and what is read back from a
file are the same thing, so that either can be looked at, saved and drawn alike.

    result      what all results can do
    tables      tables for pandas or polars
    comparison  two models compared; matrix: all pairs of some models
    study       a named study, done; reproduction: all studies of a dispute
    inspection  what a model holds; plan: what reading would cost
"""
