"""Changes to documents: validation of requests, and the resulting new contents of files."""
