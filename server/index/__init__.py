"""The index: immutable snapshots of all documents, and the queries that read them."""
