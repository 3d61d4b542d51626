"""Rate limits: counting the requests of each client, across workers and machines."""
