"""What can be done with a site, by anybody: how one is opened, and who writes to it from a command."""
