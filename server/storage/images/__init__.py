"""Image support: reads dimensions from file headers, and transforms images in separate processes."""
