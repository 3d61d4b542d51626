"""Bifolio: a content server whose documents are files in git."""

__version__ = "0.1.0"
