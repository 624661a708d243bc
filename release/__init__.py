"""What is handed out: the wheel, the source archive, ``kshell.pyz``, and images (see docs/installation.md)."""
