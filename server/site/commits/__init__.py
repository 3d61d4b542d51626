"""Commits of writes: timing, files and messages."""
