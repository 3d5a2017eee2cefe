"""Serve the page (script/build-web makes it) to the browsers of this machine, and to no one else.

    script/serve [--port N] [--folder DIRECTORY] [--no-isolation]

--no-isolation leaves out the headers with which a browser lends the page several threads: so it is on most
static servers, at a first visit.
"""
import argparse
import http.server
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "build-web", "page")
DEFAULT_PORT = 8700

ISOLATION = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}
TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", ".css": "text/css",
         ".svg": "image/svg+xml", ".png": "image/png"}


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = TYPES
    headers_added = ISOLATION

    def end_headers(self):
        for name, value in self.headers_added.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def list_directory(self, path):
        self.send_error(404)

    def log_message(self, *args):
        pass


def server(folder, port, handler):
    class InFolder(handler):
        def __init__(self, *args):
            super().__init__(*args, directory=folder)

    return http.server.ThreadingHTTPServer(("127.0.0.1", port), InFolder)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--port", type=int)
    parser.add_argument("--folder", default=PAGE)
    parser.add_argument("--no-isolation", action="store_true")
    arguments = parser.parse_args()
    if not os.path.exists(os.path.join(arguments.folder, "index.html")):
        sys.exit(f"script/serve: there is no page in {arguments.folder}")
    if arguments.no_isolation:
        Handler.headers_added = {}
    try:
        serving = server(arguments.folder, DEFAULT_PORT if arguments.port is None else arguments.port, Handler)
    except OSError:
        if arguments.port is not None:
            sys.exit(f"script/serve: port {arguments.port} is taken; choose another, or leave out --port")
        serving = server(arguments.folder, 0, Handler)
    print(f"http://127.0.0.1:{serving.server_address[1]}/    Ctrl-C ends", flush=True)
    try:
        serving.serve_forever()
    except KeyboardInterrupt:
        pass


main()
