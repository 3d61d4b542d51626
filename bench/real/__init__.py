"""Test on real repositories: compares what Bifolio reads and writes with independent readers."""
