"""The mutable state of a site, and the code that keeps it up to date."""
