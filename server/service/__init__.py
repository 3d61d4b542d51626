"""What can be done with a site, by anybody: opening it, reading and writing it, without a word of HTTP."""
