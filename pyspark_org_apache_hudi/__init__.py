"""The data source name ``org.apache.hudi``, as Hudi's bundle has it.

PySpark knows a source by one name, and looks for one source in each package.
"""

from pyspark_hudi.source import DefaultSource as HudiSource

__all__ = ["DefaultSource"]


class DefaultSource(HudiSource):
    """The data source ``hudi`` under another name."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``format(...)``."""
        return "org.apache.hudi"
