"""The studio: the editors' page at /studio, and signing in to it (docs/studio.md)."""
