"""site.yaml: the settings of a site."""
