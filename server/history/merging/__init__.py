"""Merging of branches: documents by attribute, other texts by line, all other files as a whole."""
