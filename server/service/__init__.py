"""Operations on a site (opening, reading and writing), for use by HTTP handlers and commands."""
