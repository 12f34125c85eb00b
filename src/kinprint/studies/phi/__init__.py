"""The answer that brought in a third model: confusion matrices, and where norms start."""
