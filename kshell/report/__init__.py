"""The page of ``report``: answers of commands with their pictures, as one file."""
