"""Merging of branches. Documents are merged attribute by attribute, and other texts line by line. All other
files are taken completely from one side.
"""
