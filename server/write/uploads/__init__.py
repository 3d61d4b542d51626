"""Uploaded files: storing them, describing them, and attaching them to documents."""
