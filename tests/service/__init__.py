"""What can be done with a site, without HTTP: `server.service`."""
