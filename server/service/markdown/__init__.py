"""Markdown versions of documents and lists (docs/markdown.md)."""
