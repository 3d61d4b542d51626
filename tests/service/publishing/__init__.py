"""Tests of `server.service.publishing`."""
