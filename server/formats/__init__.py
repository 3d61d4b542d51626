"""Parsers of file texts into trees with positions, and edits that keep all other bytes."""
