"""The search index on disk. It is implemented with whoosh3; only this package imports whoosh3."""
