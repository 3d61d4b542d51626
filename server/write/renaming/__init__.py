"""Renaming of documents and media files, including the references to them in other files."""
