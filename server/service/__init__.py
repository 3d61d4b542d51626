"""Operations on a site, for HTTP handlers and commands."""
