"""Merging of branches: documents attribute by attribute, text files line by line, other files as a whole."""
