"""/history: the commits of documents, how versions differ, who wrote what, and versions back again."""
