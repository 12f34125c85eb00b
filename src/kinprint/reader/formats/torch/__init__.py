"""Files of `torch.save`, zip archives and the older pickles, read without running anything."""
