"""The requests and responses of Kafka's protocol that kshell uses, each declared once, in one module per subject."""
