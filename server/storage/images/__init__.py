"""Images: reads their dimensions, and transforms them in separate processes."""
