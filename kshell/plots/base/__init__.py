"""What pictures are made of: their declaration, one look for all, bars, time."""
