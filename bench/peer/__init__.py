"""The servers with which Bifolio is compared: `make bench-peers`."""
