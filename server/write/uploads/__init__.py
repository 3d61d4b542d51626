"""Uploaded files: their descriptions, their storage, and the documents that they are attached to."""
