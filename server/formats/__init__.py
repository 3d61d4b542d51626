"""Parsers with positions, and editors that change only the necessary bytes."""
