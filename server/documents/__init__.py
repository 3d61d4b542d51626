"""Document versions: their file paths, their values, and how files store the values."""
