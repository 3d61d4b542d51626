"""The parameters of a request as a frozen syntax tree, checked against the schema."""
