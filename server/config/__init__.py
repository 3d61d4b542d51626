"""Settings of a site (site.yaml)."""
