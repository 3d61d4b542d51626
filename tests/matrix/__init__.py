"""One matrix for all surfaces: every operation of the table of operations × seven identities, on twin sites.

Twins differ only in secrets that an identity may not see. So what it is answered is the same, byte for byte,
has no secret in it; nor have events, webhooks and log lines. Requests that succeed come first (`cases`,
`probes`), then random ones (`requests`). That it would notice a leak is tested with planted ones (`faults`).
`make torture` sends 100,000 requests, CI 5,000.
"""
