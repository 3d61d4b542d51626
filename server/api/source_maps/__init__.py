"""Content source maps: marks in the texts of an answer that say where each comes from, for previews."""
