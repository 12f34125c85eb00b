"""Chance: how often would independent training do this? Arrays and a seed in, results out.

Training cannot tell one label from another, so independent initialisation makes labels and
signs random: which unit has which index, which of two mirrored signs a unit carries. A
statistic is compared with its value under relabellings of one model, and every p-value here
is a finite-sample bound that holds for any other model, data and architecture. Nothing here
knows a tensor's name; what may be relabelled, the caller says by what he passes in.

Three rules keep the bounds exact, and every module follows them. A bound may depend on the
observed statistic and on the orbit (all relabelled data as a set), never on which element of
it was seen. A relabelling of the data must relabel the scores and change nothing else, so
preparation treats all units alike. Ties and rounding count against the finding.
"""
