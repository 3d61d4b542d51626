"""Differential test: sends the same random requests to Bifolio and to Strapi (`make peer-diff`)."""
