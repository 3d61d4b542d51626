"""Prepares writes, including those that the git remote must accept before any file changes."""
