"""Front page of the documentation. It uses the API of a Bifolio that serves `docs/`."""
