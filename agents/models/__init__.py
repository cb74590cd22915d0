"""Model endpoints: the one client, what its failures mean, who retries, and what calls cost."""
