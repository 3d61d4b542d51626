"""The peers that Quire is measured against: `make bench-peers`."""
