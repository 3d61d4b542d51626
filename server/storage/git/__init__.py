"""git command line: commits, history, branches, remotes and uncommitted changes."""
