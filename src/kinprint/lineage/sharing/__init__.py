"""Where shared weights are: which layer answers to which, and how alike each role is there."""
