"""File formats: parsers that return trees with positions, and editors that keep all other bytes."""
