"""A metadata directory, or one file of it, as a source."""
