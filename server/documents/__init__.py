"""Document versions: their file paths, their values, and the conversion of these values from and to files."""
