"""Parsers that report positions, and editors that change only the necessary bytes."""
