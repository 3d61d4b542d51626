"""Background jobs: what they do, when they run, and their positions (cursors), which survive a restart."""
