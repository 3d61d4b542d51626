"""`bifolio export`: the API as files that any web server can serve (docs/static.md)."""
