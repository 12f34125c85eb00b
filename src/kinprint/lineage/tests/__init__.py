"""The tests of dependence, by what they relabel or flip; each is one entry of the menu."""
