"""Changes to documents: computation of the new contents of the files that store the documents."""
