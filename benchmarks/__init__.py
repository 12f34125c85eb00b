"""Speed against the floor, measured in one run and printed as a table: `make bench`."""
