"""A change of a document as new texts of files."""
