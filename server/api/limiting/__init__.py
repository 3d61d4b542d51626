"""Rate limits, which count a client's requests to all workers and machines together."""
