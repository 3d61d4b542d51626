"""Another name for a document or media file, and for it in all that refers to it."""
