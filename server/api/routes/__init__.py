"""Handlers of operations, one module for each part of the API, with shared code for writes and sign-in."""
