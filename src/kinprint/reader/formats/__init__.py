"""Weight file formats: each module turns the first bytes of a file into a Header."""
