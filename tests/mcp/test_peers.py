"""The cheapest of `tests/peers`: the official SDK in a process of its own, over both transports."""

import importlib.util
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parent.parent / "peers"


@pytest.fixture(scope="module")
def peers():
    spec = importlib.util.spec_from_file_location("peers_run", PEERS / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_official_client_calls_and_leaves_with_a_call_open(peers, transport):
    result = peers.run_client([sys.executable, PEERS / "clients" / "mcp_client.py"], transport)
    assert peers.is_good(result), result
    assert result["left"] == "MCPError"
    assert {"echo", "slow"} <= {*result["tools"]}
