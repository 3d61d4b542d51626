"""Bifolio beside the reference implementation, asked the same at random: `make peer-diff`."""
