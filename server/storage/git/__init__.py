"""Wrappers around the git command line for commits, history, branches, remotes and uncommitted changes."""
