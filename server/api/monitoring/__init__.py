"""Monitoring for operators: health, metrics and a request log (docs/monitoring.md)."""
