"""Commits of writes through the API: when they are created, which files they contain, and their messages."""
