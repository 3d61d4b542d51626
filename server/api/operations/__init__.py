"""The table of operations, with one row for each HTTP method of a path."""
