"""Readers for an export archive and for a running installation. Both return a `source.Source`."""
