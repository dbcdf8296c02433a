"""The back end of a sign-up page, with nothing but Python's standard library."""

import json
import os
import time
import urllib.error
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

GATE = os.environ.get("MAILGATE_URL", "http://127.0.0.1:8080")
KEY = os.environ["MAILGATE_KEY"]
HOST, PORT = os.environ.get("LISTEN", "127.0.0.1:3000").split(":")


def ask(path, body, key=None):
    """Returns the status and the JSON of mailgate's answer. Under a key it is safe to ask again."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key
    request = urllib.request.Request(GATE + path, json.dumps(body).encode(), headers)
    for attempt in range(3 if key else 1):
        if attempt:
            time.sleep(0.2 * 2**attempt)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (409, 502, 503):
                return error.code, json.load(error) if "json" in error.headers["Content-Type"] else None
        except OSError:
            pass  # no answer
    return 502, None


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        with open(os.path.join(os.path.dirname(__file__), "../html/index.html"), "rb") as page:
            self.answer(200, page.read(), "text/html")

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        email = form.get("email", [""])[0]
        if self.path == "/send":
            status, answer = ask("/send-code", {"email": email, "purpose": "sign-up"}, key=str(uuid.uuid4()))
            self.answer(status, json.dumps(answer).encode())  # the page passes it to the countdown
        elif self.path == "/verify":
            status, _ = ask("/verify-code", {"email": email, "code": form["code"][0], "purpose": "sign-up"})
            self.answer(204 if status == 200 else 422)  # at 204 begins the session

    def answer(self, status, body=b"", kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer((HOST, int(PORT)), Handler).serve_forever()
