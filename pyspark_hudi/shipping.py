"""Values that name the packages an executor lacks.

What Spark sends to its executors names the modules it is made of. On an executor without the wheel
that ends in a bare ``No module named ...``, deep in Spark's own code. A :class:`Shipped` value
travels with the function that opens it instead, and that function knows what to say.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any


class Shipped:
    """A mixin for pickles that need nothing but Python to load.

    Its instances are pickled by way of a function.
    """

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str, bytes]]:
        kind = type(self)
        return _opener(), (kind.__module__, kind.__qualname__, pickle.dumps(self.shipped()))

    def shipped(self) -> dict[str, Any]:
        """Return the attributes that travel."""
        return self.__dict__


def _opener() -> Callable[..., Any]:
    """Return a local function, which Spark sends by value."""
    # heavy, and needed only once something is sent
    from hudi_core.engine.plain_errors import MISSING  # noqa: PLC0415

    message = MISSING

    def unpack(module: str, name: str, state: bytes) -> Any:
        import importlib  # noqa: PLC0415 - there is no module around this function over there
        import pickle  # noqa: PLC0415
        import sys  # noqa: PLC0415

        try:
            kind = getattr(importlib.import_module(module), name)
            # made by Spark's driver in __reduce__, and only ever inside Spark's own channel
            attributes = pickle.loads(state)  # noqa: S301
        except ImportError as error:
            explanation = message.format(python=sys.executable, reason=error)
            raise ImportError(explanation) from error
        value = kind.__new__(kind)
        value.__dict__.update(attributes)
        return value

    return unpack
