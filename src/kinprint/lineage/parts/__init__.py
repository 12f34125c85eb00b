"""Single parts of two models: how each is tested, how much of it is equal, what is said of it."""
