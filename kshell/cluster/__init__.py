"""What a running cluster reports about itself, as several commands need it.

In come a session and, for live sources, its connections (:mod:`kshell.client`). Out go nodes with their API versions
and software, supported and finalized features, entities with configs, what each broker carries, and the state that the
checks of ``health`` look at. What one command alone needs stands in its own module.
"""
