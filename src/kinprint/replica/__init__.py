"""Sparse replicas: repositories with the true layout of large models and almost no content.

They stand in for real models in offline benchmarks and in the replay of published numbers.
No figure measured on a replica is a finding about the real model.
"""

from kinprint.replica.build import build_replicas
from kinprint.replica.layout import replica_names

__all__ = ["build_replicas", "replica_names"]
