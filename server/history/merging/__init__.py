"""Merging of branches. Documents are merged attribute by attribute, and other text files line by line. For
all remaining files, the complete file is used from one side.
"""
