"""Documents as people see them, one module or package a medium; none of them computes."""
