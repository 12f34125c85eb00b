"""Named experiments: which slices of which models, and which measures of them."""
