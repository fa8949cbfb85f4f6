"""Stages of a table: rows that are checked, then published or dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hudi_core.config.resolve import options_as_strings
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine, engine_for
from hudi_core.model.result import CommitResult
from hudi_core.services.stage import (
    Stage,
    find_stage,
    publish_stage,
    stage_write,
    staged_operation,
    stages_of,
)
from hudi_core.services.stage_record import StageRecord, drop_stage
from hudi_core.table.arguments import Extras, Options
from hudi_core.table.writing import TableWriting
from hudi_core.write.validation import Validator


class TableStaging(TableWriting):
    """A table with stages."""

    def stage(
        self,
        data: Any,
        operation: str = "upsert",
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        validators: Sequence[Validator] = (),
    ) -> Stage:
        """Stage a write: rows to be checked, then published or dropped.

        Nothing of it is in the table before :meth:`Stage.publish`, which fails where another write
        has changed what the stage builds on. A stage expires after
        ``hoodie.stage.hours.retained``.

        Parameters
        ----------
        data
            The rows.
        operation
            Name of the method, such as ``"upsert"``.

        Raises
        ------
        InvalidOptionError
            The operation takes no rows.
        CommitValidationError
            A validator refuses the table as it would be. Nothing was staged.
        """
        wanted, engine = staged_operation(operation), chosen_engine(engine, data)
        data = engine.take(data, self._columns)
        writer = self._writer(options, engine, Extras(extra_metadata, None, validators))
        given = self._options | options_as_strings(options)
        return self._staged(stage_write(writer, data, wanted, given))

    def stages(self) -> tuple[Stage, ...]:
        """The stages that can be published, the oldest first.

        A warning names those whose record is damaged; :meth:`drop_stage` deletes them.
        """
        return tuple(map(self._staged, stages_of(self._present())))

    def find_stage(self, stage: str) -> Stage:
        """The stage with an id.

        Raises
        ------
        UnknownStageError
            There is none: it was published, dropped, or has expired.
        CorruptMetadataError
            Its record is damaged.
        """
        return self._staged(find_stage(self._present(), stage))

    def drop_stage(self, stage: str) -> None:
        """Delete the stage with an id, whatever state it is in.

        Unlike :meth:`Stage.drop` it takes stages too that have expired, that their writer did not
        finish, or whose record is damaged.

        Raises
        ------
        UnknownStageError
            There is none.
        """
        drop_stage(self._opened.client.storage, stage)

    def _staged(self, record: StageRecord) -> Stage:
        return Stage(record, lambda: self._opened.as_stored().afresh, self._publish)

    def _publish(self, stage: Stage, data: Any, validators: Sequence[Validator]) -> CommitResult:
        engine, record = engine_for(data), stage.record
        data = engine.take(data)
        writer = self._writer(record.options, engine, Extras(None, None, validators))
        return self._done(writer, lambda: publish_stage(writer, record, data))
