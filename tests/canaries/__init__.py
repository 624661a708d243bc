"""Secrets and hostile text over all that kshell shows, writes and starts: neither is to be seen, and nothing obeyed."""
