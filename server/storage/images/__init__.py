"""Images: reading their width and height from their headers, and resizing them in a separate process."""
