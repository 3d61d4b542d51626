"""Servers that Bifolio is compared with: `make bench-peers`."""
