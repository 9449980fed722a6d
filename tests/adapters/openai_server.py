"""A small real HTTP server that speaks OpenAI's chat completions: streaming, tool calls, JSON, errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Fault:
    """An HTTP error instead of an answer."""

    status: int
    message: str = "out of order"


@dataclass(frozen=True)
class ToolCall:
    """The model calls a tool."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class CutOff:
    """The connection breaks after so many characters of a streamed text."""

    text: str
    after: int


Reply = str | Fault | ToolCall | CutOff | dict[str, Any]
Script = Sequence[Reply] | Callable[[dict[str, Any]], Reply]


class OpenAIServer:
    """Serves on a free loopback port for as long as its block runs.

    Args:
        script: What to answer: a list, one reply a request, or a function of the request's body. A dict is
            sent as JSON content, as structured output is.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self._script = script
        self._lock = threading.Lock()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def reply(self, body: dict[str, Any], key: str | None) -> Reply:
        with self._lock:
            position = len(self.requests)
            self.requests.append(body)
            self.keys.append(key)
        if callable(self._script):
            return self._script(body)
        return (
            self._script[position] if position < len(self._script) else Fault(500, "the script is at its end")
        )


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: OpenAIServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _owner(self) -> OpenAIServer:
        assert isinstance(self.server, _Http)
        return self.server.owner

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self._send(404, {"error": {"message": f"no such path: {self.path}"}})
            return
        reply = self._owner.reply(body, self.headers.get("Authorization"))
        if isinstance(reply, Fault):
            self._send(reply.status, {"error": {"message": reply.message, "type": "server_error"}})
        elif body.get("stream"):
            self._stream(reply, body)
        else:
            self._send(200, _completion(reply, body))

    def _send(self, status: int, payload: dict[str, Any]) -> None:
        content = json.dumps(payload, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, reply: Reply, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for delta in _deltas(reply):
            self._event(_chunk(body, delta, None))
        if isinstance(reply, CutOff):
            self.close_connection = True  # in the middle of a chunked body
            return
        finish = "tool_calls" if isinstance(reply, ToolCall) else "stop"
        self._event(_chunk(body, {}, finish))
        if (body.get("stream_options") or {}).get("include_usage"):
            self._event({**_chunk(body, {}, None), "choices": [], "usage": _USAGE})
        self._write(b"data: [DONE]\n\n")
        self._write(b"")

    def _event(self, payload: dict[str, Any]) -> None:
        self._write(f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode())

    def _write(self, content: bytes) -> None:
        """One chunk of the body; an empty one ends it."""
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _text(reply: Reply) -> str:
    if isinstance(reply, dict):
        return json.dumps(reply, ensure_ascii=False)
    return reply.text[: reply.after] if isinstance(reply, CutOff) else str(reply)


def _call(reply: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(reply.arguments, ensure_ascii=False)
    return {"id": "call_1", "type": "function", "function": {"name": reply.name, "arguments": arguments}}


def _completion(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if isinstance(reply, ToolCall) else _text(reply),
    }
    if isinstance(reply, ToolCall):
        message["tool_calls"] = [_call(reply)]
    finish = "tool_calls" if isinstance(reply, ToolCall) else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _USAGE,
    }


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    if not isinstance(reply, ToolCall):
        text = _text(reply)
        for start in range(0, len(text), 4):
            yield {"content": text[start : start + 4]}
        return
    call = _call(reply)
    arguments = call["function"]["arguments"]
    half = len(arguments) // 2
    yield {
        "tool_calls": [{"index": 0, **call, "function": {"name": reply.name, "arguments": arguments[:half]}}]
    }
    yield {"tool_calls": [{"index": 0, "function": {"arguments": arguments[half:]}}]}


def _chunk(body: dict[str, Any], delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
