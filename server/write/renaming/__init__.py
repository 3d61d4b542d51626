"""Renaming of documents and media files, including all references to them."""
