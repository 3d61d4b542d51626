"""The table of operations, which has one row for each HTTP method that a path supports."""
