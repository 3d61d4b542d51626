"""Several machines that share a git remote."""
