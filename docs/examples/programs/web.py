"""A web server whose pages have the size that their address says: GET /1000000 answers with so many bytes. Arguments: ADDRESS PORT."""

import sys
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer

CHUNK = bytes(1 << 16)


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        left = int(self.path.strip("/"))
        self.send_response(200)
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left > 0:
            self.wfile.write(CHUNK[:left])
            left -= len(CHUNK)


# Not HTTPServer, which looks for its own name first: a host in a test network has no name server.
ThreadingTCPServer((sys.argv[1], int(sys.argv[2])), Page).serve_forever()
