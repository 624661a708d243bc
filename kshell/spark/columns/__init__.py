"""Decoding many records at once, by columns, with numpy and Arrow.

::

    framing   where in the bytes the values of many batches are
    shapes    a declaration as steps
    walk      values through those steps, parted by shape
    texts     values of one shape as JSON text
    values    all of it: which values are decoded so, and which one by one
    rows      what came out of both, in the order of the records

Only the form that nearly all metadata has is decoded here. Nothing is decided about anything else.
"""
