"""Where records come from. A source only reads: no lock, no write, no temporary file beside the data."""
