"""A small inference engine: one decoder, three seams, and a record of every step.

Read it in this order: ``transformer`` (the operators of one forward pass, under the names that the
arithmetic uses), ``batch`` (what a step works on), ``pages`` (who holds which part of the cache),
``kv_cache`` and ``attention``, ``linear`` (one kernel a weight format), ``sampling``, ``scheduler``
(whose turn it is), ``server`` (the loop), ``speculation`` and ``engine`` (the door). ``checkpoint``
and the modules it names bring weights in. What depends on the device stands behind three seams:
``make_linear``, ``make_attention`` and ``make_runner``.
"""
