"""Background jobs of a site: follow the change log, commit, scale pictures, check changes."""
