"""The critique of the baseline: layer 0, equal distance, more models, more measures."""
