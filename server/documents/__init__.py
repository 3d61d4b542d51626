"""Document versions, their file paths and values."""
