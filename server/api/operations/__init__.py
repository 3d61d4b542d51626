"""The table of operations. It has one row for each method of each path."""
