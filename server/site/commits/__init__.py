"""Commits of writes through the API: when they are made, with which files and messages."""
