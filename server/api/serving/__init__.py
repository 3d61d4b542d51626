"""Processes and connections: a supervisor, and workers with an HTTP/1.1 server on an event loop each."""
