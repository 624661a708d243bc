"""The report of a warehouse: what needs attention, then a section a subject, each with a picture and short tables.

Made in three stages, so that each can be tried without the others: :mod:`.collect` asks Spark for few rows,
:mod:`.compose` makes sections and pictures of them, :mod:`.page` and :mod:`.markdown` write those down. A section is
one module of :mod:`.sections`; nothing lists them.
"""
