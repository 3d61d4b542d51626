"""Checks of a site's files, and automatic fixes (`bifolio check`)."""
