"""Real repositories: compares what Bifolio reads and writes with independent readers."""
