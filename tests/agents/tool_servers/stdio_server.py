"""A tool server on stdin and stdout that misbehaves where it is told to.

It speaks the handshake of 2025-06-18 by hand, on the standard library alone: it starts at once, and it
can do what a server of the mcp package never would.

    python stdio_server.py [FAULT]

Faults: ``silent`` answers nothing at all; ``broken`` lists a tool with a broken schema; ``noise`` prints
lines of its own between messages; ``refuses`` writes why to stderr and ends.
"""

import json
import os
import sys
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "echo",
        "description": "Gives the text back.",
        "inputSchema": TEXT,
        "annotations": {"readOnlyHint": True},
    },
    {"name": "count", "description": "Counts its calls.", "inputSchema": NOTHING},
    {"name": "crash", "description": "Ends the server.", "inputSchema": NOTHING},
    {"name": "hang", "description": "Never answers.", "inputSchema": NOTHING},
    {"name": "cancelled", "description": "Calls that were given up.", "inputSchema": NOTHING},
    {"name": "fail", "description": "Says that it failed.", "inputSchema": NOTHING},
    {"name": "variables", "description": "Its environment.", "inputSchema": NOTHING},
    {"name": "glued", "description": "Answers behind noise on the same line.", "inputSchema": NOTHING},
    {"name": "pid", "description": "Its process.", "inputSchema": NOTHING},
    {"name": "picture", "description": "Gives an image.", "inputSchema": NOTHING},
]
if FAULT == "broken":
    TOOLS += [
        {"name": "odd", "description": "Broken.", "inputSchema": {"type": "object", "properties": {"a": 7}}},
        {"name": "none", "description": "Broken.", "inputSchema": None},
    ]


def say(message: dict[str, Any], before: str = "") -> None:
    """Write a message."""
    sys.stdout.write(f"{before}{json.dumps({'jsonrpc': '2.0', **message})}\n")
    sys.stdout.flush()


def text(said: str, *, error: bool = False) -> dict[str, Any]:
    """A tool's result."""
    return {"content": [{"type": "text", "text": said}], "isError": error}


def answer(known: int | str, tool: str, arguments: dict[str, Any], counts: dict[str, int]) -> None:
    """Answer a call of a tool."""
    before, result = "", text("")
    match tool:
        case "echo":
            result = text(arguments["text"])
        case "count" | "cancelled":
            result = text(str(counts[tool]))
        case "crash":
            os._exit(3)
        case "hang":
            return
        case "fail":
            result = text("the disk is full", error=True)
        case "pid":
            result = text(str(os.getpid()))
        case "variables":
            result = text(" ".join(sorted(os.environ)))
        case "glued":
            before, result = "progress 100%", text("read me")
        case "picture":
            image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            result = {"content": [{"type": "text", "text": "a dot"}, image]}
    say({"id": known, "result": result}, before)


def main() -> None:
    """Answer until the input ends."""
    if FAULT == "refuses":
        sys.exit("no licence for tools found")
    counts = {"count": 0, "cancelled": 0}
    for line in sys.stdin:
        message = json.loads(line)
        if FAULT == "silent":
            continue
        if FAULT == "noise":
            sys.stdout.write("noise of the server's own\n")
        method, known = message.get("method"), message.get("id")
        counts["cancelled"] += method == "notifications/cancelled"
        if known is None:
            continue
        if method == "initialize":
            served = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            say({"id": known, "result": {**served, "serverInfo": {"name": "tests", "version": "1"}}})
        elif method == "tools/list":
            say({"id": known, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            counts["count"] += 1
            answer(known, message["params"]["name"], message["params"].get("arguments") or {}, counts)
        else:
            say({"id": known, "error": {"code": -32601, "message": f"no method {method}"}})


main()
