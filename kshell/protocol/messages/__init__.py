"""Requests and responses of Kafka's protocol, declared once each; one module a concern."""
