"""Processes and connections: workers that are replaced when they end, and HTTP as granian speaks it."""
