"""Processes and connections: a supervisor, and workers that each run an HTTP/1.1 server on an event loop."""
