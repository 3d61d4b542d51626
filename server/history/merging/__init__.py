"""Merges of branches: documents attribute by attribute, texts by line, other files as a whole."""
