"""Rate limits. Each client's requests are counted across all workers and machines."""
