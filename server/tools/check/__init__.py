"""What `quire check` found, as people and programs read it."""
