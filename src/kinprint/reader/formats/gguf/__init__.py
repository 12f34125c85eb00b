"""GGUF: headers, models in several files, and quantised blocks."""
