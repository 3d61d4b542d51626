"""Webhooks: matching of events, signatures, and delivery in order with retries."""
