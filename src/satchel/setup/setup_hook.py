"""Run the `setup(ctx)` of a plugin; any failure becomes one message without secrets."""

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from satchel.configuration.configuration import read_configuration
from satchel.errors import SatchelError
from satchel.formats.config_fields import ConfigField
from satchel.formats.declared_tools import defines_setup
from satchel.importing.code_guard import PluginCodeError, describe_error, with_author_names
from satchel.importing.importer import import_folder
from satchel.importing.process_state import ProcessState
from satchel.lazy_dataclass import dataclass
from satchel.runtime.redaction import redacted
from satchel.setup.setup_context import Person, SetupContext
from satchel.sources.plugin_findings import PluginFinding

_DEFAULT = "setup"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupHook:
    """The module with a plugin's `setup`, and the sources of the plugin."""

    folder: str
    sources: Mapping[str, bytes]
    module: str
    file: str

    @property
    def path(self) -> str:
        """Return the path of the module."""
        return os.path.join(self.folder, *self.file.split("/"))

    @property
    def has_setup(self) -> bool:
        """Whether the module defines `setup`; a `setup.py` may be a build script instead."""
        return defines_setup(self.sources[self.file])

    def run(
        self, plugin: str, fields: tuple[ConfigField, ...], person: Person, limit: float
    ) -> None:
        """Import the module within `limit` seconds, and run its `setup` without a limit.

        Raises `SatchelError` for any failure; the message contains no secret of the plugin.
        """
        ctx = SetupContext(plugin=plugin, folder=Path(self.folder), person=person, fields=fields)
        before = ProcessState.now()
        try:
            code = import_folder(self.folder, self.sources, self.module, limit)
            try:
                setup = getattr(code.thing, "setup", None)
                if not callable(setup):
                    raise SatchelError("its 'setup' is not a function setup(ctx)")
                _run_if_async(setup(ctx))
            finally:
                code.purge()
                before.put_back(self.folder)
        except KeyboardInterrupt:
            raise SatchelError("was interrupted", where=self.path) from None
        except BaseException as problem:
            error = problem if isinstance(problem, PluginCodeError) else describe_error(problem)
            secrets = {**_secrets(plugin, fields), "answers": ctx._secret_answers}  # noqa: SLF001 - not for plugins
            raise self._without_secrets(error, secrets) from problem

    def _without_secrets(self, error: PluginCodeError, secrets: Mapping[str, Any]) -> SatchelError:
        where = f"{error.path or self.path}:{error.line}" if error.line else self.path
        cause = error.__cause__
        # Errors of Satchel are readable without the name of the exception.
        is_own = isinstance(cause, SatchelError)
        text = with_author_names(str(cause)) if is_own else error.message
        return SatchelError(redacted(text, secrets), where=where)


def _secrets(plugin: str, fields: tuple[ConfigField, ...]) -> dict[str, Any]:
    """Return the configured secrets; a value that is not declared may be one, too."""
    raw = read_configuration(plugin, {}, fields=fields).raw
    public = {item.key for item in fields if not item.is_secret}
    return {key: value for key, value in raw.items() if key not in public}


def find_setup_hook(plugin: PluginFinding) -> SetupHook | None:
    """Return the module that is run when the plugin is installed, or `None`."""
    module = (plugin.manifest.setup if plugin.manifest else "") or _DEFAULT
    file = plugin.file_of(module)
    if not file:
        return None
    return SetupHook(folder=plugin.code_path, sources=plugin.sources, module=module, file=file)


def _run_if_async(result: Any) -> None:
    if inspect.isawaitable(result):
        # Lazy: most setups are plain functions.
        import asyncio

        async def wait() -> None:
            await result

        asyncio.run(wait())
