"""The one mutable holder of a site, and what keeps it fresh."""
