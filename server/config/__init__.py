"""A site's settings, which are in site.yaml."""
