"""The context of a plugin's `setup(ctx)`: ask, configure, download and extract."""

import os
from collections.abc import Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from satchel.configuration.configuration import configuration_path, read_configuration
from satchel.configuration.env_file import change_env
from satchel.errors import DefinitionError, SatchelError
from satchel.files.file_reader import is_inside
from satchel.files.state_files import data_folder
from satchel.formats.config_fields import ConfigField
from satchel.lazy_dataclass import dataclass
from satchel.setup.archive_extraction import MOST_BYTES, MOST_FILES, extract_archive, stem_of
from satchel.setup.downloads import Download, last_part
from satchel.setup.field_values import as_text, field_of

T = TypeVar("T")

_YES_OR_NO = {
    **dict.fromkeys(("y", "yes", "true", "1"), True),
    **dict.fromkeys(("n", "no", "false", "0"), False),
}


class Person(Protocol):
    """The user who installs a plugin."""

    @property
    def is_there(self) -> bool:
        """Whether questions can be asked."""

    def say(self, text: str) -> None:
        """Show a message."""

    def answer(self, question: str, *, secret: bool) -> str:
        """Ask a question and return the answer; the input of a secret is hidden."""

    def progress(self, label: str, done: int, total: int | None) -> None:
        """Show how many bytes of a download have arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupContext:
    """The functions that a plugin's `setup(ctx)` can use while the plugin is installed.

    `plugin` is its name, and `folder` is where it is installed. An error that the setup does not
    handle cancels the installation.
    """

    plugin: str
    folder: Path
    person: Person = field(repr=False)
    fields: tuple[ConfigField, ...] = ()
    """The configuration fields that the plugin declares."""
    _secret_answers: list[str] = field(default_factory=list, repr=False)
    """The answers to secret questions; no message shows them."""

    @property
    def interactive(self) -> bool:
        """Whether the user can be asked."""
        return self.person.is_there

    @property
    def data(self) -> Path:
        """Return the plugin's folder for downloads; upgrades keep it."""
        folder = Path(data_folder(self.plugin))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def say(self, text: object) -> None:
        """Show a message to the user, on stderr."""
        self.person.say(str(text))

    def ask(
        self,
        question: str,
        *,
        default: str | None = None,
        secret: bool = False,
        choices: Sequence[str] = (),
    ) -> str:
        """Ask the user until the answer is one of `choices`, if any are given.

        If the user cannot be asked, the answer is the default. Raises `SatchelError` without one.
        """
        if default is not None and choices and default not in choices:
            raise DefinitionError(f"the default of {question!r} is not one of its choices")
        if not self.interactive:
            return _unasked(question, default)
        options = f" ({', '.join(choices)})" if choices else ""
        hint = f" [{default}]" if default and not secret else ""
        while True:
            answer = self.person.answer(f"{question}{options}{hint}", secret=secret)
            self._secret_answers.extend([answer] if secret else [])
            if not answer and default is not None:
                return default
            if answer and (not choices or answer in choices):
                return answer
            if answer:
                self.say(f"Please answer with one of: {', '.join(choices)}.")

    def confirm(self, question: str, *, default: bool | None = None) -> bool:
        """Ask the user for yes or no.

        If the user cannot be asked, the answer is the default. Raises `SatchelError` without one.
        """
        if not self.interactive:
            return _unasked(question, default)
        hint = {True: "Y/n", False: "y/N", None: "y/n"}[default]
        while True:
            answer = self.person.answer(f"{question} [{hint}]", secret=False).strip().lower()
            if not answer and default is not None:
                return default
            if answer in _YES_OR_NO:
                return _YES_OR_NO[answer]
            self.say("Please answer yes or no.")

    def get(self, key: str, default: Any = None) -> Any:
        """Return the configured value of a key, converted to the type of its field."""
        item = field_of(self.fields, key)
        values = read_configuration(self.plugin, {}, fields=self.fields).values
        return values.get(item.key if item else key.lower(), default)

    def set(self, key: str, value: Any) -> None:
        """Set the value of a key, like `satchel config set`.

        Raises `DefinitionError` for an invalid value, and for an undeclared key if the plugin
        declares fields.
        """
        change_env(configuration_path(self.plugin), {key: as_text(self.fields, key, value)})

    def download(
        self,
        url: str,
        to: str | os.PathLike[str] = "",
        *,
        sha256: str = "",
        most_bytes: int = MOST_BYTES,
    ) -> Path:
        """Download a file and return its path.

        `to` is a path inside `data` or `folder`; by default it is the last part of the address,
        inside `data`. With `sha256`, an existing file with this checksum is not downloaded again,
        and a download with another checksum is deleted. Raises `SatchelError`.
        """
        name = os.fspath(to) or last_part(url)
        target = self._own(name)
        progress = partial(self.person.progress, os.path.basename(target))
        Download(
            url=url, target=target, progress=progress, sha256=sha256, most_bytes=most_bytes
        ).run()
        return Path(target)

    def extract(
        self,
        archive: str | os.PathLike[str],
        to: str | os.PathLike[str] = "",
        *,
        most_files: int = MOST_FILES,
        most_bytes: int = MOST_BYTES,
    ) -> Path:
        """Extract a zip or tar archive, and return the folder of its files.

        Relative paths are relative to `data`. `to` is a folder inside `data` or `folder`; by
        default it is the archive's name without its ending, inside `data`. An existing folder is
        replaced after everything was extracted. Raises `SatchelError` for a damaged archive, and
        for members outside the folder.
        """
        source = os.path.join(self.data, archive)
        target = self._own(os.fspath(to) or stem_of(source))
        extract_archive(source, target, most_files=most_files, most_bytes=most_bytes)
        return Path(target)

    def _own(self, name: str) -> str:
        """Return a path inside `data` or `folder`. Raises `DefinitionError` for any other path."""
        data, folder = os.path.realpath(self.data), os.path.realpath(self.folder)
        # The last part is not resolved: if it is a link, the link itself is replaced.
        above, last = os.path.split(os.path.normpath(os.path.join(data, name)))
        path = os.path.join(os.path.realpath(above), last)
        if any(is_inside(path, root) and path != root for root in (data, folder)):
            return path
        raise DefinitionError(
            f"{name!r} is not a path inside the data folder of the plugin {self.plugin!r}",
            fix="give to= a path such as 'model.bin'",
        )


def _unasked(question: str, default: T | None) -> T:
    if default is not None:
        return default
    raise SatchelError(
        f"cannot ask {question!r} without a terminal",
        fix="run 'satchel install' on a terminal without --no-input, or set a field of the "
        "plugin with --set KEY=VALUE",
    )
