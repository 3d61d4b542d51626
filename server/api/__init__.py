"""HTTP: the WSGI app, the table of operations, and their handlers."""
