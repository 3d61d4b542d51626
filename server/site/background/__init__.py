"""Background jobs for a site: applying changes, committing, resizing images, and finding problems."""
