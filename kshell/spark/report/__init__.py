"""The report on a warehouse: what needs attention, then one section per subject, with pictures and short tables.

Made in three stages, so that each can be tried without the others: :mod:`.collect` runs queries on Spark that
return few rows, :mod:`.compose` turns them into sections and pictures, :mod:`.page` and :mod:`.markdown` format those
as HTML and Markdown (:mod:`.write` writes the files). A section is one module of :mod:`.sections`; nothing lists them.
"""
