"""The documentation, and what keeps it true: `python -m docs`."""
