"""/access: what its caller may do, and with what."""
