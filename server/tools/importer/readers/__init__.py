"""Readers of a source: an export archive, or a running installation. Both make a `source.Source`."""
