"""The search index on disk. It is implemented with whoosh3, which only this package imports."""
