"""Background jobs: their schedules, the runner, and reports on their runs."""
