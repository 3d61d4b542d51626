"""The peers that Bifolio is measured against: `make bench-peers`."""
