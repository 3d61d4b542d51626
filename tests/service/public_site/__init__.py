"""Tests of `server.service.public_site`."""
