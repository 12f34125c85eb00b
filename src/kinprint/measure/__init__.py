"""Pure arithmetic: arrays in, numbers out. Knows no model, no tensor name and no file."""
