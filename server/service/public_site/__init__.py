"""Feeds, sitemaps, and redirects from former addresses."""
