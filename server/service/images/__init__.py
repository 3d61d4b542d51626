"""Transformed images and custom formats (docs/images.md)."""
