"""Ranges and numbers: which bytes to read, reading them once, and what they mean."""
