"""What webhooks send: bodies with documents as the API shows them."""
