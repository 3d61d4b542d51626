"""Changes of documents, as new texts of files."""
