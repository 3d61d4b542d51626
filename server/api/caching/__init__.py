"""What lets answers be kept: by the server itself, by clients, and by the caches in between."""
