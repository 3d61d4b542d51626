"""The index on disk, made with whoosh3; no other modules use the library."""
