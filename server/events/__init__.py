"""The log of events: what each change of the site did to its documents, media and content types."""
