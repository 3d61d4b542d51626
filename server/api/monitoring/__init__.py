"""What whoever runs a server is told: health, metrics, and a line for each request (docs/monitoring.md)."""
