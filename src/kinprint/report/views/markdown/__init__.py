"""Documents as Markdown pages, in which text from strangers is text."""
