"""Readers of an export archive or a running installation; both return a `source.Source`."""
