"""Background jobs for a site: applying changes, committing, resizing images, finding problems."""
