"""What silver tables are made of: their declaration, records that take effect, and versions out of them."""
