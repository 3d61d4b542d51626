"""The index: immutable snapshots of all documents, and the queries that run on them."""
