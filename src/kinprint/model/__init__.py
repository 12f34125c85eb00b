"""What each tensor is: a model's shape, read from its configuration and headers."""
