"""Crafted pairs of models whose relation is known, and what a comparison says about them.

Every pair is made from trained models by an edit that is written down here, so that what is true
of each part is known without asking any statistic. `python -m benchmarks.redteam` makes them as
files, compares them at several levels and budgets in both orders, prints what was said beside
what is true, and fails when something said is false.
"""
