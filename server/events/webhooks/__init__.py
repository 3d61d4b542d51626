"""Webhooks: matching of events, delivery in order and with retries, and signatures."""
