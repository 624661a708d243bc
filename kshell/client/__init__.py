"""Connect to Kafka's nodes and ask them; only this package opens sockets.

In: addresses and Java client properties (``settings``, ``properties``, ``tls``, ``key_stores``, ``sasl``). Out:
connections that speak versions which both sides know (``connection``, ``negotiation``), the nodes of a cluster and who
leads its quorum (``nodes``, ``leader``), typed errors (``codes``), and what releases can do (``releases``,
``inference``, ``compatibility``). Imports ``protocol`` and what is below it; never ``metadata`` or ``sources``.
"""
