"""Functions that name the packages an executor lacks.

What Spark sends to executors names the modules it is made of. On an executor without the wheel that
ends in a bare ``No module named ...``, deep in Spark's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import cloudpickle

from hudi_core.engine.plain_errors import MISSING

BatchFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def guarded(function: BatchFunction) -> BatchFunction:
    """Return a function for ``mapInArrow`` that explains missing packages.

    It needs nothing but Python to arrive: Spark sends it by value, because it is a local one, and
    what it is to do travels in it as bytes.
    """
    packed: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]  # has no types
    message = MISSING

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle  # noqa: PLC0415 - there is no module around this function over there
        import sys  # noqa: PLC0415

        try:
            # made by the driver above, and only ever inside Spark's authenticated channel
            work = pickle.loads(packed)  # noqa: S301
        except ImportError as error:
            raise ImportError(message.format(python=sys.executable, reason=error)) from error
        from hudi_core.engine.plain_errors import plain_errors  # noqa: PLC0415 - it is there

        with plain_errors():
            yield from work(batches)

    return run
