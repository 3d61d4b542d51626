"""One immutable snapshot of all documents, and how it answers a query."""
