"""/git/hook: the git remote tells that something was pushed."""
