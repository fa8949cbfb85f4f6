"""The policy of table services, and what opens and makes tables."""
