"""Calling the hooks of one format, and what happens around each call.

A hook of an ability that the format does not declare is refused. Observers are told. What comes
back is checked. :mod:`hudi_core.plugin.guard` says what becomes of errors.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from typing import Any, Final

import pluggy

from hudi_core.errors import PluginContractError, UnsupportedCapabilityError
from hudi_core.hookspecs import TableFormatHooks
from hudi_core.model.capability import FormatCapabilities
from hudi_core.model.format import FormatCommit, Publication
from hudi_core.model.instant import Action
from hudi_core.plugin import contract
from hudi_core.plugin.guard import Guard
from hudi_core.plugin.observers import Observer, Watch

NOTHING: Final = type(None)
"""The kind of ``None``."""

_log = logging.getLogger(__name__)
_ARGUMENTS: Final = {
    hook: tuple(inspect.signature(getattr(TableFormatHooks, hook)).parameters)[1:]
    for hook in contract.HOOKS
}
"""The names of each hook's arguments, in the order of the contract, without ``self``."""


class HookCalls:
    """One plugin manager with one format and its observers.

    Parameters
    ----------
    name
        Name of the format.
    plugin
        The format.
    observers
        Observers by name, the outermost first.

    Raises
    ------
    PluginContractError
        The plugin breaks the contract in a way that can be seen at load.
    """

    def __init__(self, name: str, plugin: object, observers: Mapping[str, object]) -> None:
        self.name = name
        self.guard = Guard(name)
        self._manager = contract.new_manager()
        implementations = contract.register(self._manager, name, plugin)
        contract.check_format(name, implementations)
        self._observers = tuple(self._register(observers))
        self._calls = {hook: self._caller(hook, plugin) for hook in contract.HOOKS}
        self.capabilities: FormatCapabilities = self.answer(
            "get_capabilities", kinds=(FormatCapabilities,)
        )
        contract.check_declared(name, self.capabilities, implementations)

    def receipt(self, hook: str, *values: object) -> FormatCommit:
        """Call a hook that owes a receipt; see :meth:`answer`."""
        receipt: FormatCommit = self.answer(hook, *values, kinds=(FormatCommit,))
        return receipt

    def answer(self, hook: str, *values: object, kinds: tuple[type, ...]) -> Any:
        """Call a hook.

        Parameters
        ----------
        hook
            Its name.
        values
            All of its arguments, in the order of the contract.
        kinds
            What the answer may be; ``NOTHING`` where it may be ``None``.

        Raises
        ------
        UnsupportedCapabilityError, PluginContractError, PluginHookError, HudiError
            See the module.
        """
        abilities = contract.NEEDED_BY.get(hook)
        if abilities is not None and not abilities & self.capabilities.declared:
            words = " or ".join(sorted(ability.words for ability in abilities))
            raise UnsupportedCapabilityError(self.name, words)
        arguments = dict(zip(_ARGUMENTS[hook], values, strict=True))
        watch = Watch.begin(self._observers, hook, arguments)
        try:
            result = self._call(hook, arguments)
            self._check(hook, result, kinds)
        except BaseException as error:
            watch.raised(error)
            raise
        watch.returned(result)
        return result

    def _call(self, hook: str, arguments: Mapping[str, object]) -> object:
        return self.guard.call(hook, lambda: self._calls[hook](**arguments))

    def _check(self, hook: str, result: object, kinds: tuple[type, ...]) -> None:
        names = ("None" if kind is NOTHING else kind.__name__ for kind in kinds)
        self.guard.require(hook, result, kinds, " or ".join(names))
        # frozen dataclasses do not check the types of their fields
        if isinstance(result, FormatCommit):
            whole = {"version": _is_named(result.version), "location": _is_text(result.location)}
            self._check_fields(f"the receipt of {hook}", result, whole)
        elif isinstance(result, Publication):
            whole = {
                "requested_time": _is_named(result.requested_time),
                "action": isinstance(result.action, Action),
                "version": _is_named(result.version),
                "completion_time": _is_text(result.completion_time),
            }
            self._check_fields(f"the publication of {hook}", result, whole)

    def _check_fields(self, what: str, result: object, whole: Mapping[str, bool]) -> None:
        for name in (name for name, is_right in whole.items() if not is_right):
            raise PluginContractError(self.name, f"{what} has the {name} {getattr(result, name)!r}")

    # --- loading ---------------------------------------------------------------------------------

    def _register(self, observers: Mapping[str, object]) -> list[Observer]:
        kept = []
        for name, plugin in observers.items():
            try:
                # alone first, so that one that is refused leaves no trace beside the format
                alone = contract.register(contract.new_manager(), name, plugin)
                contract.check_observer(name, alone)
                kept.append(Observer(name, contract.register(self._manager, name, plugin)))
            except PluginContractError:
                _log.exception("observer %s is left out", name)
        return kept

    def _caller(self, hook: str, plugin: object) -> pluggy.HookCaller:
        others = [one for one in self._manager.get_plugins() if one is not plugin]
        return self._manager.subset_hook_caller(hook, others)


def _is_named(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)
