"""Changes to documents, computed as new file texts."""
