"""`bifolio export`: saves the API's responses as files that any web server can serve (docs/static.md)."""
