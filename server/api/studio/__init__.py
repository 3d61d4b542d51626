"""The studio: the page for editors at /studio, and the sign-in to this page (docs/studio.md)."""
