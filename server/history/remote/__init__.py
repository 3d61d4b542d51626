"""The git remote of a site: fetch, merge and push commits."""
