"""Image support: reads dimensions from file headers, and resizes images in a separate process."""
