"""Webhooks: matching of events, ordered and retried delivery, and signatures."""
