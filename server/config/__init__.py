"""A site's settings (site.yaml)."""
