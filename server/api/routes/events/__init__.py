"""/events: what has changed, from a log of all changes."""
