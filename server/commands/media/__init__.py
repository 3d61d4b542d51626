"""`quire media`: its commands."""
