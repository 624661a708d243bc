"""Tables: their declarations, conditions, SQL and export."""
