"""The worker half of the lab: a process of its own that owns the engine.

It is started by ``python -m core.lab.worker`` and never imported by the server. It reads jobs from
its standard input and answers on its standard output (``core.lab.protocol``); it ends when its
standard input does, so it never outlives the server.
"""
