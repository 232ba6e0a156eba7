"""Your own server, measured from outside: any that speaks OpenAI's streaming completions over HTTP.

Start at ``load.py``, then ``client.py``. Nothing here loads torch or draws.
"""
