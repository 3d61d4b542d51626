"""What git keeps of a site: how it was at any commit, and how each document came to be as it is."""
