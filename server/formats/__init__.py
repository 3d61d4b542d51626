"""Parsers that also return the positions of values, and editors that leave unchanged bytes as they are."""
