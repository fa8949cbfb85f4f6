"""Apache Hudi's own table format, as a plugin like any other."""

from native_format.plugin import NativeTableFormat

__all__ = ["NativeTableFormat"]
