"""The action for GitHub: its scripts, run with a satchel that only prints its arguments."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ACTION = Path(__file__).parents[1] / "action.yml"


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_paths_may_be_on_several_lines_or_on_one(tmp_path):
    (tmp_path / "satchel/bin").mkdir(parents=True)
    satchel = tmp_path / "satchel/bin/satchel"
    satchel.write_text('#!/bin/sh\necho "$*"\n')
    satchel.chmod(0o755)
    script = yaml.safe_load(ACTION.read_text())["runs"]["steps"][1]["run"]
    for paths in ("skills\nplugins\n", "skills plugins"):
        environ = {
            **os.environ,
            "RUNNER_TEMP": str(tmp_path),
            "SATCHEL_PATHS": paths,
            "SATCHEL_SCAN": "true",
        }
        done = subprocess.run(
            ["bash", "-e", "-c", script], env=environ, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines() == [
            f"{command} --format github -- skills plugins" for command in ("validate", "scan")
        ]


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_no_module_of_the_checkout_is_imported(tmp_path):
    for place in ("usual/python3", "satchel/bin/python"):
        program = tmp_path / place
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/sh\necho "$*"\n')
        program.chmod(0o755)
    environ = {
        "PATH": f"{tmp_path}/usual:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_ACTION_PATH": "/action",
    }
    script = yaml.safe_load(ACTION.read_text())["runs"]["steps"][0]["run"]
    done = subprocess.run(
        ["bash", "-e", "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        f"-I -m venv {tmp_path}/satchel",
        "-I -m pip install --quiet /action",
    ]
