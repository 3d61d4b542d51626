"""Document versions, their file paths and their values."""
