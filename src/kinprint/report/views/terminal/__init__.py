"""Documents as lines of a terminal, eighty columns wide."""
