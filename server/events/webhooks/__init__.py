"""Webhooks: which events are sent where, in which order, how often, and how they are signed."""
