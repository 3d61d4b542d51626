"""Operations on a site, independent of HTTP and the command line: open, read, write."""
