"""The git remote of a site: fetching, merging and pushing commits."""
