"""Flask handlers for the operations, with one module for each part of the API."""
