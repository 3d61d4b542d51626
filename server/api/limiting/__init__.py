"""Rate limits. Each client's requests to all workers and machines are counted together."""
