"""Merging of branches: documents attribute by attribute, text files line by line, and other files as a whole.
"""
