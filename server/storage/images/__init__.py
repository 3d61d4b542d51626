"""Images: dimensions, and transformations in separate processes."""
