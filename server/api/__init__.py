"""The HTTP API: the WSGI app, the table of operations, and the functions that handle the operations."""
