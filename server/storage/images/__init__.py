"""Pictures: measuring them from their headers, and scaling them in a separate process."""
