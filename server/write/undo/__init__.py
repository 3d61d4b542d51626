"""Takes a write back."""
