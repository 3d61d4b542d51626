"""Real repositories, served in place: what Quire reads and writes is compared with independent readers."""
