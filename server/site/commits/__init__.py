"""Commits of writes made through the API: their timing, files and messages."""
