"""The mutable state of a site, and the code that updates it."""
