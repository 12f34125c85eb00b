"""The map of shared weights: which layer corresponds to which, and how alike each role is."""
