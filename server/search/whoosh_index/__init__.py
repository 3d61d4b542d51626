"""The search index on disk, implemented with whoosh3. No other package imports this library."""
