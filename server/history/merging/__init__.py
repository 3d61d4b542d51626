"""Merging branches: documents by attribute, text files line by line, and other files as a whole."""
