"""A real Kafka for the tests: jars, clusters, and Kafka's own classes as the judge of what a directory holds."""
