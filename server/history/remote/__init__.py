"""The git remote of a site: fetches, merges and pushes commits."""
