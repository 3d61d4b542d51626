"""Image dimensions, resized variants and transformed images."""
