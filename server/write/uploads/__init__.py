"""Uploaded files: describes and stores them, and attaches them to documents."""
