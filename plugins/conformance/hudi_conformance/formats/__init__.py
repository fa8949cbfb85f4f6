"""What every table format must do, as tests.

A class for a format, in a module that pytest collects, is all::

    from hudi_conformance.formats import TwoStepFormat, TwoStepFormatSuite

    class TestMine(TwoStepFormatSuite):
        format = TwoStepFormat("mine", read=read_rows, lose=delete_metadata, intrude=foreign_commit)
"""

from hudi_conformance.formats.checks import CHECKS, Check, Deviation
from hudi_conformance.formats.suites import TableFormatSuite, TwoStepFormatSuite
from hudi_conformance.formats.under_test import FormatUnderTest, TwoStepFormat

__all__ = [
    "CHECKS",
    "Check",
    "Deviation",
    "FormatUnderTest",
    "TableFormatSuite",
    "TwoStepFormat",
    "TwoStepFormatSuite",
]
