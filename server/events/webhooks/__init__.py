"""Webhooks: matching of events, signing of requests, and delivery in order, with retries."""
