"""Ranked search: what a site says, found by its words (docs/search.md)."""
