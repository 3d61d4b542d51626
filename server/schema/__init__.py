"""Content types, components and their attributes."""
