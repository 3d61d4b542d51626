"""The event log, which records every change to documents, media files and content types."""
