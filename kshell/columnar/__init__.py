"""Decode many records at once, by columns, with numpy and Arrow: for Parquet, SQL and the pipeline.

::

    framing  find the values of the records in the bytes of many batches
    shapes   turn the declaration of a record type into decoding steps
    walk     take many values through these steps together, split by shape
    values   decode all values to JSON text: by shape where possible; it names those to decode one by one
    records  collect batches, decode them in both ways, and make columns of the results

Only the form that nearly all metadata records have is decoded by columns. All other records, damaged ones included, are
decoded one by one.
"""
