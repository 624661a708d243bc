"""What commands are made of: their declaration, the command language, results."""
