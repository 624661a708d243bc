"""SASL: from client properties to a mechanism, and the messages that it exchanges with a server.

In: the properties of a connection (:mod:`configuration`). Out: generators of messages (:mod:`mechanisms`, and
:mod:`oauth` for OAUTHBEARER, which is imported only where it is used, because it needs HTTP). No socket of Kafka's.
"""
