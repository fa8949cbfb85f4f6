"""Errors of table formats and other extensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hudi_core.errors.base import HudiError

_OWN: Final = "hudi-core"


class PluginError(HudiError):
    """A table format or another extension cannot be used."""


class UnknownTableFormatError(PluginError):
    """No installed distribution provides the table's format.

    Parameters
    ----------
    name
        The format's name.
    installed
        Names of the formats that are installed.
    package
        The distribution to install.
    known
        Whether ``package`` is known to provide it; otherwise it is what custom would call it.
    near
        An installed format, or one of the project's, that ``name`` may be a misspelling of; then
        no package is proposed.
    """

    def __init__(
        self,
        name: str,
        installed: Sequence[str],
        package: str,
        *,
        known: bool = True,
        near: str | None = None,
    ) -> None:
        self.name, self.installed = name, tuple(installed)
        self.package, self.known, self.near = package, known, near
        if known:
            hint = f"Run `pip install {package}`."
        elif near is not None:
            hint = f"Did you mean {near!r}?"
        else:
            hint = (
                "Install the distribution that registers it under the entry-point group "
                f"hudi.table_formats; by custom it is called {package}, but check whose it is "
                "first."
            )
        super().__init__(
            f"No installed plugin provides the table format {name!r} "
            f"(installed: {', '.join(installed) or 'none'})",
            hint,
            name=name,
            installed=tuple(installed),
            package=package,
            known=known,
            near=near,
        )


class UnknownExtensionError(PluginError):
    """No installed distribution provides an extension of that name.

    Parameters
    ----------
    kind
        What was looked for: ``key generator``, ``lock provider``, ...
    name
        Its name.
    known
        The names that there are: those built in, and those that are installed.
    group
        The entry-point group that was searched.
    near
        The known name that ``name`` may be a misspelling of.
    given
        The option that names it, with its text; ``None`` where the table does.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Sequence[str],
        group: str,
        *,
        near: str | None = None,
        given: str | None = None,
    ) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.group, self.near, self.given = group, near, given
        what = (
            f"o installed plugin provides the {kind} {name!r} (known: {', '.join(known) or 'none'})"
        )
        super().__init__(
            f"N{what}" if given is None else f"{given} cannot be used: n{what}",
            f"Did you mean {near!r}?"
            if near is not None
            else f"Install the distribution that registers it under the entry-point group {group}, "
            "wherever the table is written: with Spark on the executors, too.",
            kind=kind,
            name=name,
            known=tuple(known),
            group=group,
            near=near,
            given=given,
        )

    def given_as(self, option: str, text: str) -> UnknownExtensionError:
        """The same error of an option that names the extension."""
        given = f"{option}={text!r}"
        return UnknownExtensionError(
            self.kind, self.name, self.known, self.group, near=self.near, given=given
        )


class PluginConflictError(PluginError):
    """Two distributions claim the same name of a format or extension."""

    def __init__(self, name: str, distributions: Sequence[str], kind: str = "table format") -> None:
        self.name, self.distributions, self.kind = name, tuple(distributions), kind
        others = [one for one in distributions if one != _OWN]
        hint = (
            f"Uninstall {', '.join(others)}, or have its authors choose another name: {name!r} is "
            f"that of {_OWN}."
            if _OWN in distributions and others
            else "Uninstall all but one of them."
        )
        super().__init__(
            f"The {kind} {name!r} is provided by several distributions: {', '.join(distributions)}",
            hint,
            name=name,
            distributions=tuple(distributions),
            kind=kind,
        )


class PluginLoadError(PluginError):
    """The plugin's entry point cannot be imported."""

    def __init__(
        self, name: str, distribution: str, reason: str, kind: str = "table format"
    ) -> None:
        self.name, self.distribution, self.reason = name, distribution, reason
        self.kind = kind
        super().__init__(
            f"The {kind} {name!r} of distribution {distribution} cannot be loaded: {reason}",
            f"Reinstall or upgrade {distribution}.",
            name=name,
            distribution=distribution,
            reason=reason,
            kind=kind,
        )


class PluginContractError(PluginError):
    """A plugin broke its contract: :mod:`hudi_core.hookspecs`, or its base class."""

    def __init__(self, name: str, reason: str, *, kind: str = "table format") -> None:
        self.name, self.reason, self.kind = name, reason, kind
        contract = (
            "hudi_core.hookspecs says what each hook owes"
            if kind == "table format"
            else "docs/extension_points.md says what each method owes"
        )
        super().__init__(
            f"The {kind} {name!r} breaks its contract: {reason}",
            f"Report it to the plugin's authors; {contract}.",
            name=name,
            reason=reason,
            kind=kind,
        )


class ExtensionCallError(PluginError):
    """A method of an extension failed with a foreign error."""

    def __init__(self, kind: str, name: str, method: str, reason: str) -> None:
        self.kind, self.name, self.method, self.reason = kind, name, method, reason
        super().__init__(
            f"The {kind} {name!r} failed in {method}: {reason}",
            "Report it to the plugin's authors.",
            kind=kind,
            name=name,
            method=method,
            reason=reason,
        )


class PluginHookError(PluginError):
    """A hook of the table's format failed with a foreign error.

    What the hook had done by then is not known; for a ``complete_*`` hook the format may hold the
    instant or not.
    """

    def __init__(self, name: str, hook: str, reason: str) -> None:
        self.name, self.hook, self.reason = name, hook, reason
        super().__init__(
            f"The table format {name!r} failed in {hook}: {reason}",
            "Report it to the plugin's authors; the next write finds out how far the format came.",
            name=name,
            hook=hook,
            reason=reason,
        )


class TableClosedError(HudiError):
    """A table was closed, and is used all the same."""

    def __init__(self, table_format: str) -> None:
        super().__init__(
            f"The table was closed, and what its format ({table_format}) held of it given back",
            "Open it again.",
        )


class UnsupportedCapabilityError(PluginError):
    """The table's format does not declare the ability an action needs.

    Parameters
    ----------
    name
        The format's name.
    capability
        What is missing, in words.
    reason
        Why the format lacks it, as it says itself.
    """

    def __init__(self, name: str, capability: str, reason: str = "") -> None:
        self.name, self.capability, self.reason = name, capability, reason
        because = f", because {reason}" if reason else ""
        super().__init__(
            f"The table format {name!r} does not support {capability}{because}",
            "Use another format, or a release of the plugin that declares it.",
            name=name,
            capability=capability,
            reason=reason,
        )


class CommandLoadError(PluginError):
    """A command that another distribution adds to `hudi` cannot be imported."""

    def __init__(self, name: str, distribution: str, reason: str) -> None:
        self.name, self.distribution, self.reason = name, distribution, reason
        super().__init__(
            f"The command {name!r} of distribution {distribution} cannot be loaded: {reason}",
            f"Reinstall or upgrade {distribution}.",
            name=name,
            distribution=distribution,
            reason=reason,
        )


class CommandConflictError(PluginError):
    """Two distributions add a command of the same name to `hudi`."""

    def __init__(self, name: str, distributions: Sequence[str]) -> None:
        self.name, self.distributions = name, tuple(distributions)
        super().__init__(
            f"The command {name!r} is provided by several distributions: "
            f"{', '.join(distributions)}",
            "Uninstall all but one of them.",
            name=name,
            distributions=tuple(distributions),
        )
