"""The operations that every site has: media, logins, users, roles, locales, content types."""
