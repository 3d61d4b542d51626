"""What files held before a write, kept for a while so that it can be taken back in every byte."""
