"""Checks of a whole site, and safe automatic fixes (`bifolio check`)."""
