"""Changes to documents, which result in new contents for their files."""
