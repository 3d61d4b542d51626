"""Takes back what a write has done, as its answer has offered (docs/batch.md)."""
