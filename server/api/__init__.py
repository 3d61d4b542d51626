"""The HTTP API: the WSGI app, the table of operations, and the handlers of the operations."""
