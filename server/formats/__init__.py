"""Parsers that report the positions of values, and editors that change only the necessary bytes."""
