"""Decode many records at once, by columns, with numpy and Arrow: the fast path of the view ``records``.

::

    framing   find the values of the records in the bytes of many batches
    shapes    turn the declaration of a record type into decoding steps
    walk      take many values through these steps together, split by shape
    texts     print the values of one shape as JSON text
    values    decode all values: by shape where possible; it names those to be decoded one by one

Only the form that nearly all metadata records have is decoded here. All other records, damaged ones included, are left
to :mod:`kshell.spark.decoding`, which decodes them one by one, and puts both kinds of results into columns.
"""
