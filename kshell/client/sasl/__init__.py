"""SASL authentication: from client properties to the messages that a mechanism exchanges with a server.

In: the properties of a connection (:mod:`configuration`). Out: generators of messages (:mod:`mechanisms`, where each
mechanism is declared; :mod:`oauth` for OAUTHBEARER is imported only where it is used, because it needs HTTP). Nothing
here sends these messages to Kafka: :mod:`kshell.client.negotiation` does.
"""
