"""Profiles of a Python program over HTTP, with the standard library only:

    GET /debug/pprof/profile?seconds=N     where its threads are, a hundred times a second

    import pprof_route
    pprof_route.serve("127.0.0.1", 6065)

It is a profile of time, not of CPU: a thread that waits counts where it waits. Nothing here asks who is
there: listen on an address that only profpull reaches.
"""

import collections
import gzip
import http.server
import socketserver
import sys
import threading
import time
import urllib.parse

PERIOD = 10_000_000  # nanoseconds


def sample(seconds):
    """Counts stacks, each a tuple of code and line from the leaf to the root."""
    stacks = collections.Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for thread, frame in sys._current_frames().items():
            stack = []
            while frame is not None and thread != threading.get_ident():
                stack.append((frame.f_code, frame.f_lineno or 0))
                frame = frame.f_back
            if stack:
                stacks[tuple(stack)] += 1
        time.sleep(PERIOD / 1e9)
    return stacks


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, *parts):
    content = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def encode(stacks, begin, duration):
    """The bytes of a profile; the numbers are those of the fields in pprof's profile.proto."""
    strings, functions, locations = {"": 0}, {}, {}

    def index(table, key, first):
        return table.setdefault(key, len(table) + first)

    def value_type(field, kind, unit):
        return message(field, number(1, index(strings, kind, 0)), number(2, index(strings, unit, 0)))

    out = [value_type(1, "sample", "count"), value_type(1, "wall", "nanoseconds")]
    for stack, count in stacks.items():
        ids = b"".join(varint(index(locations, place, 1)) for place in stack)
        out.append(message(2, message(1, ids), message(2, varint(count), varint(count * PERIOD))))
    for (code, line), i in locations.items():
        where = message(4, number(1, index(functions, code, 1)), number(2, line))
        out.append(message(4, number(1, i), where))
    for code, i in functions.items():
        name = index(strings, getattr(code, "co_qualname", code.co_name), 0)
        file = index(strings, code.co_filename, 0)
        out.append(message(5, number(1, i), number(2, name), number(4, file), number(5, code.co_firstlineno)))
    out += [number(9, begin), number(10, duration), value_type(11, "wall", "nanoseconds"), number(12, PERIOD)]
    out += [message(6, s.encode("utf-8", "replace")) for s in strings]
    return gzip.compress(b"".join(out))


class Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10  # seconds, for a client that says nothing

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path != "/debug/pprof/profile":
            self.send_error(404)
            return
        begin = time.time_ns()
        seconds = urllib.parse.parse_qs(url.query).get("seconds", ["10"])[0]
        body = encode(sample(float(seconds)), begin, time.time_ns() - begin)
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            pass  # the client has gone away

    def log_message(self, *args):
        """A scrape is not worth a line."""


class Server(socketserver.TCPServer):
    allow_reuse_address = True


def serve(host, port):
    """Answers from a thread that does not keep the program alive; returns the server."""
    server = Server((host, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
