"""The table of operations: one row for every method of every path."""
