"""git, by its command line: when files were committed, what differs from the last commit, what it runs."""
