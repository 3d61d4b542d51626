"""Rate limits, which count each client's requests across all workers and machines."""
