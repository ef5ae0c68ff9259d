"""The rules of a scan: data, with the reason for each and the incident that it comes from."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import yaml

from satchel.lazy_dataclass import dataclass
from satchel.scan.data_flow import DataFlow
from satchel.scan.lexicon import CodePattern, Lexicon
from satchel.scan.lure_finder import LureFinder, read_sign
from satchel.scan.package_names import PackageNames
from satchel.scan.pieces import JOINT
from satchel.scan.readable_text import normal_line

_NO_SPACES = {"ja", "zh", "ko", "th", "ar", "fa", "he"}
"""Languages whose words may begin in the middle of what is written together."""
_NEGATIVE_ENDING = r"(?!\w{0,3}m[ae][ymz])"
"""A Turkish verb is negated by its ending: `gönderin`, send; `göndermeyin`, do not send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRule:
    """What to look for in the text of a file, and why."""

    id: str
    meaning: str
    """What the found text does, and why a reviewer wants to see it."""
    incident: str
    """A published attack of this kind."""
    signs: tuple[str, ...] = ()
    """Kinds of words that stand together. Rules about files and letters have none."""


def _bounded(pattern: str) -> str:
    """Limit the repeats of letters in a pattern: a hostile text must not take minutes to search."""
    bounds = {"*": "{0,200}", "+": "{1,200}"}
    repeated = r"(\\[SWswd]|\[(?:\\.|[^\]\\])+\])([*+])"
    return re.sub(repeated, lambda match: match[1] + bounds[match[2]], pattern)


def _in_pieces(word: str) -> str:
    """Return a pattern for a word that has joints inside."""
    first_joints = (
        rf"{re.escape(word[:at])}«{JOINT}»{f'{JOINT}?'.join(map(re.escape, word[at:]))}"
        for at in range(1, len(word))
    )
    return rf"(?<![\w{JOINT}])(?:{'|'.join(first_joints)})(?![\w{JOINT}])"


def _content_of(name: str) -> Any:
    return yaml.safe_load(resources.files("satchel.scan").joinpath(name).read_text("utf-8"))


@cache
def _data() -> Any:
    return _content_of("lure_rules.yaml")


def _code() -> dict[str, list[str]]:
    """Return the patterns of each kind, with the words of other languages."""
    code = {kind: [*map(_bounded, patterns)] for kind, patterns in _data()["code"].items()}
    for kind, by_language in _content_of("foreign_words.yaml").items():
        for language, words in by_language.items():
            start = "" if language in _NO_SPACES else r"(?<!\w)"
            end = _NEGATIVE_ENDING if language == "tr" else ""
            pattern = f"{start}«{normal_line(words)}»{end}"
            code.setdefault(kind, []).append(pattern)
    code["obfuscated"] += map(_in_pieces, _data()["split_words"])
    return code


def _rules() -> dict[str, ScanRule]:
    return {
        name: ScanRule(
            id=name,
            meaning=rule["meaning"],
            incident=rule["incident"],
            signs=tuple(rule.get("signs", ())),
        )
        for name, rule in _data()["rules"].items()
    }


SCAN_RULES: Mapping[str, ScanRule] = MappingProxyType(_rules())


@cache
def lure_finder() -> LureFinder:
    """Return what finds the signs of all rules.

    Addresses of installers that their makers document, and uses of a key, are no signs.
    """
    data = _data()
    addresses = "|".join(data["known_addresses"])
    installer = rf"(?:\b(?:curl|wget)\s+(?:[-\"']\S+\s+)*[\"']?)?https?«://»(?:{addresses})\S*"
    harmless = (installer, *data["harmless"])
    return LureFinder(
        Lexicon(data["words"], _code(), data["negatable"]),
        DataFlow(data["definitions"].values(), data["flowing"]),
        {name: tuple(map(read_sign, rule.signs)) for name, rule in SCAN_RULES.items()},
        [CodePattern(_bounded(pattern)) for pattern in harmless],
        PackageNames(data["packages"].split(), data["similar_packages"].split()),
    )
