"""Commits writes made through the API: when to commit, which files to include, and what the message says."""
