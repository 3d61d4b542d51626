"""A matrix test for leaks: every API operation is called with eight identities, on sites that differ only in
secrets. So is every tool, resource and prompt of the Model Context Protocol (`agents`).

Such sites are called twins: they differ only in secrets that the identity may not see. Therefore their
responses, events, webhooks and log lines must be identical and must not contain a secret. Requests that
succeed come first (`cases`, `probes`), then random ones (`requests`). To test the matrix itself, leaks are
planted (`faults`). `make torture` sends 100,000 requests; CI sends 3,000.
"""
