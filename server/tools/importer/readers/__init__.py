"""Readers of an export archive or a running installation into a `source.Source`."""
