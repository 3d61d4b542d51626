"""Background jobs for a site: following the change log, committing, scaling pictures, checking changes."""
