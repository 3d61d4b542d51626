"""Document versions: their file paths and values, and the form of the values in files."""
