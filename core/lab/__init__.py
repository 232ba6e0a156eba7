"""Measure, predict, compare. Two halves that meet through a module name and plain records.

The client half (``request``, ``job``, ``record``, ``calibration``, ``predict``, ``compare``,
``client``) runs in the server and never imports torch. The worker half (``core.lab.worker``) is
started as a process of its own by ``python -m core.lab.worker``; it owns the engine.
"""
