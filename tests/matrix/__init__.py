"""One matrix for all surfaces: every operation of the table of operations × seven identities, on twin sites.

Twins differ only in secrets that an identity may not see. So what it is answered is the same, byte for byte,
and has no secret in it; nor have events, webhooks and log lines. `make torture` asks 100,000 times, CI 3,000.
"""
