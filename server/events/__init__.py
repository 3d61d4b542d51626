"""The event log: what each change of the site did to documents, media and content types."""
