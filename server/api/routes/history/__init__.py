"""/history: commits of documents, differences between versions, blame, and restore."""
