"""The pictures: one function each, from numbers to a ``Picture``. A picture never decides."""
