from satchel.mcp_servers.connection_errors import down_diagnostic, reason
from satchel.mcp_servers.server_addresses import StdioServer
from satchel.mcp_servers.server_process import StderrBuffer


def test_without_the_extra_the_message_says_how_to_install_it_and_blames_no_server():
    why = reason(ImportError("no module named mcp"))
    problem = down_diagnostic("box", StdioServer(command="run"), why, StderrBuffer())
    assert problem.message.startswith("MCP server 'box' cannot be reached without the extra mcp")
    assert problem.message.endswith(": pip install '.[mcp]' in a clone of Satchel")
    assert problem.fix == "install the extra, then start again"
    gone = down_diagnostic("box", StdioServer(command="run"), "disconnected", StderrBuffer())
    assert gone.message == "MCP server 'box' disconnected; its tools are revoked"
    assert gone.fix.startswith("start or fix the server")


def test_a_whole_command_line_in_command_has_a_hint_at_args():
    why = reason(FileNotFoundError(2, "No such file or directory"))
    for command, is_hinted in (("sh -c ls", True), ("sh", False)):
        problem = down_diagnostic("box", StdioServer(command=command), why, StderrBuffer())
        assert ("its arguments in 'args'" in problem.fix) == is_hinted
