"""The planner: does it fit, how fast is it, what limits it, and what would help most."""
