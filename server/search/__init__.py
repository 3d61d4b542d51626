"""Ranked full-text search (docs/search.md)."""
