"""Running the `setup(ctx)` of a plugin; whatever it does ends in one clear message."""

import inspect
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from satchel.errors import SatchelError
from satchel.formats import ConfigField, defines_setup
from satchel.runtime.redaction import redacted
from satchel.setup.setup_context import Person, SetupContext
from satchel.sources.code_guard import PluginCodeError, describe_error
from satchel.sources.configuration import read_configuration
from satchel.sources.importer import import_folder
from satchel.sources.plugin_findings import PluginFinding
from satchel.sources.process_state import PRIVATE_PREFIX, ProcessState

_DEFAULT = "setup"
# Authors know their modules by their own names.
_PRIVATE_NAME = re.compile(rf"{PRIVATE_PREFIX}\w*?_\d+\.?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupHook:
    """The module that holds a plugin's `setup`, with all of its sources as they were read."""

    folder: str
    sources: Mapping[str, bytes]
    module: str
    file: str

    @property
    def path(self) -> str:
        """Return the file that holds it."""
        return os.path.join(self.folder, *self.file.split("/"))

    @property
    def is_one(self) -> bool:
        """Tell whether it can be run: a `setup.py` may be what builds a package instead."""
        return defines_setup(self.sources[self.file])

    def run(
        self, plugin: str, fields: tuple[ConfigField, ...], person: Person, limit: float
    ) -> None:
        """Import the module within `limit` seconds, and run its `setup` for as long as it takes.

        Raises `SatchelError`, whatever it does, and never with a secret of the plugin.
        """
        confidant = _RecordingPerson(person)
        ctx = SetupContext(plugin=plugin, folder=Path(self.folder), person=confidant, fields=fields)
        before = ProcessState.now()
        try:
            code = import_folder(self.folder, self.sources, self.module, limit)
            try:
                setup = getattr(code.thing, "setup", None)
                if not callable(setup):
                    raise SatchelError("its 'setup' is no function setup(ctx)")
                _wait_for(setup(ctx))
            finally:
                code.purge()
                before.put_back(self.folder)
        except KeyboardInterrupt:
            raise SatchelError("was interrupted", where=self.path) from None
        except BaseException as problem:
            told = problem if isinstance(problem, PluginCodeError) else describe_error(problem)
            secrets = {**_secrets(plugin, fields), "answers": confidant.secrets}
            raise self._failed(told, secrets) from problem

    def _failed(self, problem: PluginCodeError, secrets: Mapping[str, Any]) -> SatchelError:
        place = f"{problem.path or self.path}:{problem.line}" if problem.line else self.path
        cause = problem.__cause__
        # What our own functions raise is a sentence already.
        told = str(cause) if isinstance(cause, SatchelError) else problem.message
        return SatchelError(redacted(_PRIVATE_NAME.sub("", told), secrets), where=place)


@dataclass(frozen=True, slots=True)
class _RecordingPerson:
    """Asks a person, and remembers the secrets that they told."""

    person: Person
    secrets: list[str] = field(default_factory=list)

    @property
    def is_there(self) -> bool:
        return self.person.is_there

    def say(self, text: str) -> None:
        self.person.say(text)

    def answer(self, question: str, *, secret: bool) -> str:
        given = self.person.answer(question, secret=secret)
        if secret:
            self.secrets.append(given)
        return given

    def progress(self, what: str, done: int, total: int | None) -> None:
        self.person.progress(what, done, total)


def _secrets(plugin: str, fields: tuple[ConfigField, ...]) -> dict[str, Any]:
    """Return the values that must not be told; what nobody declared may be a secret, too."""
    written = read_configuration(plugin, {}, fields=fields).written
    is_open = {item.key for item in fields if not item.is_secret}
    return {key: value for key, value in written.items() if key not in is_open}


def find_setup_hook(found: PluginFinding) -> SetupHook | None:
    """Return what is run when a plugin is installed, `None` if nothing is."""
    module = found.manifest.setup if found.manifest else ""
    file = found.file_of(module or _DEFAULT)
    if not file:
        return None
    return SetupHook(
        folder=found.code_path, sources=found.sources, module=module or _DEFAULT, file=file
    )


def _wait_for(outcome: Any) -> None:
    """Wait for the end of a setup that is a coroutine."""
    if inspect.isawaitable(outcome):
        # Lazy: most setups are plain functions.
        import asyncio

        async def awaited() -> None:
            await outcome

        asyncio.run(awaited())
