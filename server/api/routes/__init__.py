"""The blueprints: one module for each part of the API."""
