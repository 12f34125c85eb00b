"""What models say about themselves, read beside the weights and never counted as evidence."""
