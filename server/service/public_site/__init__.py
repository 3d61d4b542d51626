"""What a site publishes besides its API: feeds, sitemaps, and redirects from former addresses."""
