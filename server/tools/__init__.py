"""Tools for editors and builds, which work without the command line as well."""
