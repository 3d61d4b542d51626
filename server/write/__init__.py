"""Changes to documents: determines the new content of the files in which they are stored."""
