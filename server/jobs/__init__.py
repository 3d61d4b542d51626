"""Background jobs: the work, its schedule, and the cursor that survives a restart."""
