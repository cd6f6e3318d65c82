"""A file over QUIC, by aioquic. Arguments: serve ADDRESS PORT, or fetch ADDRESS PORT BYTES.

The server has a certificate of its own making, which the client does not check. A request is a number of bytes on a stream; the answer is so many, on the same
stream.
"""

import asyncio
import datetime
import ssl
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ALPN = ["bytes"]
CHUNK = bytes(1 << 14)


class Server(QuicConnectionProtocol):
    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and event.end_stream:
            left = int(event.data)
            while left > 0:
                part = CHUNK[:left]
                left -= len(part)
                self._quic.send_stream_data(event.stream_id, part, end_stream=left == 0)
            self.transmit()


def certificate() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "quic.example")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1))
    return made.sign(key, hashes.SHA256()), key


async def serve_for_ever(address: str, port: int) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=ALPN)
    configuration.certificate, configuration.private_key = certificate()
    await serve(address, port, configuration=configuration, create_protocol=Server)
    await asyncio.Event().wait()


async def fetch(address: str, port: int, size: int) -> None:
    configuration = QuicConfiguration(is_client=True, alpn_protocols=ALPN, verify_mode=ssl.CERT_NONE)
    async with connect(address, port, configuration=configuration) as client:
        reader, writer = await client.create_stream()
        writer.write(str(size).encode())
        writer.write_eof()
        got = 0
        while data := await reader.read(1 << 16):
            got += len(data)
        print(got, "bytes")
        if got != size:
            sys.exit(1)


if sys.argv[1] == "serve":
    asyncio.run(serve_for_ever(sys.argv[2], int(sys.argv[3])))
else:
    asyncio.run(fetch(sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
