"""Transformed images and custom formats, for URLs such as `/uploads/bay.jpg?width=800` (docs/images.md)."""
