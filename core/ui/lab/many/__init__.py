"""The lab's part on many requests: a trace, how it is served, and what became of it."""
