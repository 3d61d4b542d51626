"""Parsers that also return the positions of values, and editors that leave all other bytes unchanged."""
