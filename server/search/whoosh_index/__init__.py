"""The search index on disk. Only this package imports whoosh3."""
