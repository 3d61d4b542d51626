"""Uploaded files: their descriptions, where they are stored, and how they are attached to documents."""
