"""What the `setup(ctx)` of a plugin is given: ways to ask, to configure, and to fetch."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from satchel.errors import DefinitionError, SatchelError
from satchel.formats import ConfigField
from satchel.setup.archive_extraction import MOST_BYTES, MOST_FILES, Extraction, stem_of
from satchel.setup.downloads import Download, last_part
from satchel.setup.field_values import as_text, field_of
from satchel.sources.configuration import configuration_path, read_configuration
from satchel.sources.env_file import change_env
from satchel.sources.file_reader import is_inside

_FOLDER_VARIABLE = "SATCHEL_DATA_DIR"
_YES_OR_NO = {
    **dict.fromkeys(("y", "yes", "true", "1"), True),
    **dict.fromkeys(("n", "no", "false", "0"), False),
}


class Person(Protocol):
    """Whoever installs a plugin, as far as a setup has to do with them."""

    @property
    def is_there(self) -> bool:
        """Tell whether they can be asked."""

    def say(self, text: str) -> None:
        """Tell them something."""

    def answer(self, question: str, *, secret: bool) -> str:
        """Ask them, and return what they typed; a secret is not shown meanwhile."""

    def progress(self, what: str, done: int, total: int | None) -> None:
        """Tell them how many bytes of a download are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupContext:
    """What a plugin's `setup(ctx)` can ask, tell, configure and fetch while it is installed.

    `plugin` is its name and `folder` where it is installed. Whatever raises here ends the setup
    with one clear message, unless the setup handles it: then nothing is installed.
    """

    plugin: str
    folder: Path
    person: Person = field(repr=False)
    fields: tuple[ConfigField, ...] = ()
    """The fields of the configuration that the plugin declares."""

    @property
    def interactive(self) -> bool:
        """Tell whether somebody can be asked."""
        return self.person.is_there

    @property
    def data(self) -> Path:
        """Return the plugin's folder for what it fetches; it outlives upgrades."""
        folder = Path(data_folder(self.plugin))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def say(self, text: object) -> None:
        """Tell the user something, on stderr."""
        self.person.say(str(text))

    def ask(
        self,
        question: str,
        *,
        default: str | None = None,
        secret: bool = False,
        choices: Sequence[str] = (),
    ) -> str:
        """Ask the user, again until the answer is one of `choices`.

        Where nobody can be asked the default is the answer. Raises `SatchelError` without one.
        """
        if default is not None and choices and default not in choices:
            raise DefinitionError(f"the default of {question!r} is none of its choices")
        if not self.interactive:
            if default is None:
                raise _nobody(question)
            return default
        options = f" ({', '.join(choices)})" if choices else ""
        shown = f" [{default}]" if default and not secret else ""
        while True:
            given = self.person.answer(f"{question}{options}{shown}", secret=secret)
            if not given and default is not None:
                return default
            if given and (not choices or given in choices):
                return given
            if given:
                self.say(f"one of {', '.join(choices)}, please")

    def confirm(self, question: str, *, default: bool | None = None) -> bool:
        """Ask the user for yes or no; where nobody can be asked the default is the answer.

        Raises `SatchelError` without one.
        """
        if not self.interactive:
            if default is None:
                raise _nobody(question)
            return default
        hint = {True: "Y/n", False: "y/N", None: "y/n"}[default]
        while True:
            given = self.person.answer(f"{question} [{hint}]", secret=False).strip().lower()
            if not given and default is not None:
                return default
            if given in _YES_OR_NO:
                return _YES_OR_NO[given]
            self.say("yes or no, please")

    def get(self, key: str, default: Any = None) -> Any:
        """Return what a key of the configuration is set to, of the type that its field has."""
        item = field_of(self.fields, key)
        values = read_configuration(self.plugin, {}, fields=self.fields).values
        return values.get(item.key if item else key.lower(), default)

    def set(self, key: str, value: Any) -> None:
        """Configure a key, as `satchel config set` does.

        Raises `DefinitionError` for a value that its field does not allow, and for a key that is
        not declared, if the plugin declares any.
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
        """Fetch a file, and return its path once it is whole.

        `to` is a path below `data` or `folder`, by default the last part of the address below
        `data`. With `sha256` a file that is there already is not fetched again, and one with
        another checksum never gets the name. Raises `SatchelError`.
        """
        name = os.fspath(to) or last_part(url)
        target = self._own(name)
        what = os.path.basename(target)

        def progress(done: int, total: int | None) -> None:
            self.person.progress(what, done, total)

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
        """Take a zip or tar archive apart, and return the folder that holds all of it.

        A path that is not absolute is one below `data`; what `to` names is below that or `folder`,
        by default the archive's name without its ending, below `data`. A folder that is there
        already is replaced once all is extracted. A damaged archive is refused, and one with
        something that would lead out of the folder. Raises `SatchelError`.
        """
        source = os.path.join(self.data, archive)
        target = self._own(os.fspath(to) or stem_of(source))
        Extraction(
            archive=source, target=target, most_files=most_files, most_bytes=most_bytes
        ).run()
        return Path(target)

    def _own(self, name: str) -> str:
        """Return a path below the data or the plugin's own folder; nothing else is written."""
        data, folder = os.path.realpath(self.data), os.path.realpath(self.folder)
        # What it leads to may be replaced, so the last part is not resolved.
        above, last = os.path.split(os.path.normpath(os.path.join(data, name)))
        path = os.path.join(os.path.realpath(above), last)
        if any(is_inside(path, root) and path != root for root in (data, folder)):
            return path
        raise DefinitionError(
            f"{name!r} is no path below the data of the plugin {self.plugin!r}",
            fix="give to= a path such as 'model.bin'",
        )


def data_folder(plugin: str) -> str:
    """Return the folder for what a plugin fetches; `SATCHEL_DATA_DIR` moves that of all."""
    base = os.environ.get(_FOLDER_VARIABLE, "")
    if not base:
        # Lazy: most plugins fetch nothing.
        from platformdirs import user_data_dir

        base = user_data_dir("satchel", appauthor=False)
    return os.path.join(os.path.abspath(os.path.expanduser(base)), "plugins", plugin)


def _nobody(question: str) -> SatchelError:
    return SatchelError(
        f"nobody can be asked {question!r} here",
        fix="run 'satchel install' on a terminal without --no-input, or give a field of the "
        "plugin its value with --set KEY=VALUE",
    )
