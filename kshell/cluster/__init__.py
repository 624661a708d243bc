"""What the nodes of a cluster say of themselves, and what the checks of a cluster look at."""
