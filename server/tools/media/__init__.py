"""`quire media`: moves media into a bucket and back, and removes what nobody names (docs/media.md)."""
