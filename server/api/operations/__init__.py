"""The table of operations: every method of every path, for the entrance, Flask, metrics and OpenAPI."""
