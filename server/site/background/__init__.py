"""Jobs of a site beside the requests: follow the log, commit, scale pictures, check what changes bring."""
