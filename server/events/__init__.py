"""The event log: a record of every change to documents, media files and content types."""
