"""The suites of table formats, to be derived from."""

from __future__ import annotations

from hudi_conformance.formats.capabilities import CapabilityConformance
from hudi_conformance.formats.deletion_vectors import DeletionVectorConformance
from hudi_conformance.formats.every_format import FormatConformance
from hudi_conformance.formats.filters import FilterConformance
from hudi_conformance.formats.histories import HistoryConformance
from hudi_conformance.formats.recovery import RecoveryConformance
from hudi_conformance.formats.table_services import ServiceConformance
from hudi_conformance.formats.two_steps import TwoStepConformance


class TableFormatSuite(
    FormatConformance,
    CapabilityConformance,
    ServiceConformance,
    DeletionVectorConformance,
    FilterConformance,
    RecoveryConformance,
    HistoryConformance,
):
    """All checks of a format that keeps no metadata beside the Hudi timeline.

    A subclass says in ``format`` which format it is, and in ``deviations`` what is known to fail.
    """


class TwoStepFormatSuite(TableFormatSuite, TwoStepConformance):
    """All checks of a format with metadata of its own: a second step of every commit.

    A subclass gives ``format`` a :class:`~hudi_conformance.formats.TwoStepFormat`, and says in
    ``deviations`` what is known to fail.
    """
