"""A server written by hand that answers what a file says: `answering.py FILE`.

The file has a result for each method. Those of `ECHOING` have the `_meta` of the request in theirs.
"""

import json
import sys
from pathlib import Path

RESULTS = json.loads(Path(sys.argv[1]).read_text())
ECHOING = ("tools/call", "prompts/get", "resources/read", "completion/complete")
CAPABILITIES = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params", {})
    answer = {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        server = {"name": "answering", "version": "1"}
        version = params["protocolVersion"]
        answer = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": server}
        answer = {"result": answer}
    elif method in ECHOING:
        result = RESULTS[method]
        answer = {"result": {**result, "_meta": {**result["_meta"], "asked": params.get("_meta")}}}
    elif method in RESULTS:
        answer = {"result": RESULTS[method]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
