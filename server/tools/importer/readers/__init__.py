"""Readers of export archives and running installations. Each of them returns a `source.Source`."""
