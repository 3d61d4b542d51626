"""Benchmarks of speed and memory: `python -m bench`, `python -m bench servers` (docs/performance.md)."""
