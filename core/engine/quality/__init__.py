"""How far rounding moves a model from its reference: logits, perplexity, and layer by layer."""
