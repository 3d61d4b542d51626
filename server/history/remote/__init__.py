"""A site's git remote: fetching, merging and pushing commits."""
