"""Changes to documents: works out the new contents of the files that store them."""
