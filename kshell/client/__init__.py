"""The only sockets: what a connection is configured with, TLS, SASL, versions, and the connection itself."""
