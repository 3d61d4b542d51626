"""Git history of a site: its state at any commit, and the versions of each document."""
