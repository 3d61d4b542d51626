"""Uploaded files: their descriptions, their storage, and their attachment to documents."""
