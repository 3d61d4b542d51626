"""Checks of all files in a site, and safe automatic fixes (`bifolio check`)."""
