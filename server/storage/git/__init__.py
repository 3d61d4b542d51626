"""Wrappers around the git command for commits, history, branches, remotes and uncommitted changes."""
