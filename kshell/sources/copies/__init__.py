"""Copies of one metadata log, from several nodes: compare them by Raft's rules, and recover a new quorum from them.

``logs`` reads the copies and finds where two differ, ``agreement`` compares them, ``joined`` makes one log out of
them, and ``recovery`` writes the directory of a new quorum.
"""
