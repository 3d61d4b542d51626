"""Commits of API writes: their time, files and messages."""
