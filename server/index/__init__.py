"""The index: immutable snapshots of all documents, and their queries."""
