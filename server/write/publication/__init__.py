"""Ends the publication of documents, and their drafts, by what happens to their files."""
