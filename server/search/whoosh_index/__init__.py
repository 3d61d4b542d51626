"""The search index on disk. It is implemented with whoosh3, which is imported only in this package."""
