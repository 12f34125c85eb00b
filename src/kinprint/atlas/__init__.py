"""Memory: fingerprints of models on disk, and what a model is built on among thousands of them."""
