"""Git history of a site: the state of the site at any commit, and all versions of each document."""
