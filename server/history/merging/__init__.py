"""Merging of branches. Documents are merged attribute by attribute, text files line by line, and other files
as a whole.
"""
