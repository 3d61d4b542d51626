"""The settings of a site, as they are written in its file site.yaml."""
