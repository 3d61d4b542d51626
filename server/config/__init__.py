"""A site's settings, as written in its site.yaml."""
