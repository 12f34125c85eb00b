"""From records to documents: every number that views show is put down here, and none is new."""
