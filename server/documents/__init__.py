"""A version of a document: where its file is, what its values mean, and how they are written."""
