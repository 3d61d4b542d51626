"""Git history of a site: the site's state at any commit, and all versions of each document."""
