"""Facts with sources: number formats, models, accelerators, links, and the scenario that names them."""
