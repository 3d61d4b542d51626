"""The front page of the documentation, over the API of a Bifolio that serves `docs/`."""
