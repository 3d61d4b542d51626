"""Document versions: their file paths, their values, and the conversion of values from and to files."""
