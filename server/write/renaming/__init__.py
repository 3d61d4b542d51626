"""Renaming of documents and media files, with all references to them."""
