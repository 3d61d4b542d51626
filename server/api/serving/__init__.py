"""Processes and connections: workers that are restarted when they end, and HTTP/1.1 on an event loop."""
