"""Processes and connections: supervised workers, each with an HTTP/1.1 server on an event loop."""
