"""HTTP: the WSGI entrance, the table of operations and their handlers."""
