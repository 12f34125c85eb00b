"""What changed between two models, how, and from what: every tensor at full size, streamed."""
