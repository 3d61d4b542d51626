"""Real repositories, served in place: what Bifolio reads and writes is compared with independent readers."""
