"""Background jobs for a site: applying changes, committing writes, resizing images and finding problems."""
