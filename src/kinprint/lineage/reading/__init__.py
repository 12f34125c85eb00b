"""What is read of a model: levels, a plan within a budget, and the sample that it gives."""
