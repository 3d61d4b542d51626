"""Functions that call the git command line: commits, history, branches, remotes and uncommitted changes."""
