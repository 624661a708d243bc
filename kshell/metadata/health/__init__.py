"""What is wrong with a cluster, or could become so: one declared check a finding, in one module a subject.

A new check is a new declaration in one of these modules (or a new module): no other module lists them.
"""
