"""The studio: the page for editors at /studio, and sign-in to it (docs/studio.md)."""
