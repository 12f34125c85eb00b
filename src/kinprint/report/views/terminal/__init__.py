"""Documents as lines of a terminal: comparisons in sixty columns, studies in eighty."""
