"""Commits of what is written through the API: when they are made, of what, and what they say."""
