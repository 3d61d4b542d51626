"""Limits the requests of each client: how they are counted, by all workers and by all machines."""
