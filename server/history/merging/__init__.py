"""Merging of branches: documents by attribute, texts by line, other files as a whole."""
