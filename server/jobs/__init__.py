"""Background jobs: their work, their schedule, and the cursors that survive a restart."""
