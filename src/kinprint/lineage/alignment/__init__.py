"""How the parts of two models correspond: residual channels, layers, units, heads."""
