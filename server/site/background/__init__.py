"""Background jobs: applying changes, committing writes, resizing images and finding problems."""
