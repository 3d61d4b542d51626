"""Background jobs: when they run, and reports on them."""
