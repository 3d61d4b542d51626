"""Changes to documents: computes the new contents of the files that store the documents."""
