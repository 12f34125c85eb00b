"""The letters of all pictures: a small font with Hangul, shipped so that no machine lacks it."""
