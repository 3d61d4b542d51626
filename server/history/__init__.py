"""A site's git history: its state at any commit, and all versions of each document."""
