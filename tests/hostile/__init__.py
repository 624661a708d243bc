"""Directories made to harm whoever reads them: what they cost, measured in processes of their own."""
