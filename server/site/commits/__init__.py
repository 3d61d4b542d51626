"""Commits of writes through the API: when they are created, their files, and their messages."""
