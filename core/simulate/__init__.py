"""Simulators: what a system would do, in whole numbers, without computing anything."""
