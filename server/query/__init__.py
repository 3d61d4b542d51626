"""Parsing of request parameters into a frozen syntax tree, checked against the schema."""
