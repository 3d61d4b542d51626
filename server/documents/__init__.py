"""Document versions: file paths, values, and conversion of values from and to files."""
