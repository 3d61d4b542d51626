"""Pictures: measuring them by their headers, and scaling them in a separate process."""
