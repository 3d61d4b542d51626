"""The git remote of a site: fetch, integrate and push commits."""
