"""The HTTP API: the WSGI app, the table of operations, and their handlers."""
