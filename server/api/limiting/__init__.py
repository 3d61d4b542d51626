"""Rate limiting, based on each client's number of requests to all workers and machines."""
