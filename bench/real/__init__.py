"""Real repositories, served in place: compares what Bifolio reads and writes with independent readers."""
