"""The input of one pass, made by hand."""

from dataclasses import replace
from typing import Any

import pytest

from satchel.catalog.catalog_entries import HOST, PluginContribution
from satchel.loader.loader_config import LoaderConfig, ReconcileOptions
from satchel.loader.scan_cache import PassInputs, ScanCache
from satchel.settings import Settings
from satchel.sources.search_roots import Precedence


@pytest.fixture
def pass_inputs(tmp_path):
    """Return a pass over no sources, with other parts by keyword."""

    def pass_inputs(before: ScanCache | None = None, **parts: Any) -> PassInputs:
        host = PluginContribution(
            name=HOST,
            source=HOST,
            scope=Precedence.EXPLICIT,
            path="",
            unit=HOST,
            rank=(),
            digest="",
        )
        config = LoaderConfig(
            roots=(),
            entry_points=frozenset(),
            host=host,
            run_code=True,
            settings=Settings(config_folder=str(tmp_path / "c")),
        )
        names = {"run_code", "plugin_values", "roots", "entry_points", "settings", "workers"}
        of_wanted = {key: parts.pop(key) for key in names & parts.keys()}
        choices = {"selection": parts.pop("selection")} if "selection" in parts else {}
        return PassInputs(
            config=replace(config, **of_wanted),
            options=ReconcileOptions(**parts),
            cache=before or ScanCache(),
            **choices,
        )

    return pass_inputs
