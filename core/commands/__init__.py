"""One module a command: ``add_arguments(parser)``, ``run(args) -> dict``, ``render(dict) -> str``."""
