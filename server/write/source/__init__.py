"""The text of a document's file: as somebody may see it, and written as a whole."""
