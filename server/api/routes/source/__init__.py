"""/source: the files of documents as they are written; and what a write would change in them."""
