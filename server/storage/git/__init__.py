"""Calls of the git command line: commits, history, branches, remotes and uncommitted changes."""
