"""Files that are uploaded: what a form says of them, how they are stored, and the documents that get them."""
