"""P4Runtime over TLS: the server's certificate, clients' certificates, and what is said of files that do not serve."""

from __future__ import annotations

import asyncio
import json
import queue
import subprocess
from collections.abc import Iterator
from pathlib import Path

import finsy as fy
import grpc
import pytest
from finsy.proto import p4r

from fairlane.controller.config import ConfigError, Tls, read
from fairlane.controller.grpc_client import GrpcSwitch, SwitchError
from fairlane.controller.p4info import P4Info
from tests.p4runtime import support
from tests.p4runtime.certificates import Authority, Pair
from tests.p4runtime.support import Client, Program

pytestmark = pytest.mark.skipif(support.is_reference(), reason="BMv2 is often built without TLS")


class Keys:
    """An authority, another one that nobody trusts, and what they signed."""

    def __init__(self, folder: Path) -> None:
        self.ca, self.stranger = Authority(folder, "ca"), Authority(folder, "stranger")
        self.server, self.client = self.ca.sign("server"), self.ca.sign("client", "clientAuth")
        self.strange_client = self.stranger.sign("client", "clientAuth")

    def credentials(self, client: Pair | None = None, ca: Authority | None = None) -> grpc.ChannelCredentials:
        roots = (ca or self.ca).own.certificate.read_bytes()
        if client is None:
            return grpc.ssl_channel_credentials(roots)
        return grpc.ssl_channel_credentials(roots, client.key.read_bytes(), client.certificate.read_bytes())

    def options(self, *, client_auth: bool) -> list[str]:
        options = ["--grpc-server-ssl", "--grpc-server-cert", str(self.server.certificate), "--grpc-server-key", str(self.server.key)]
        if client_auth:
            options += ["--grpc-server-cacert", str(self.ca.own.certificate), "--grpc-server-with-client-auth"]
        return options


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return support.compile_program(support.PROGRAM, tmp_path_factory.mktemp("p4runtime"))


@pytest.fixture(scope="module")
def with_client_auth(keys: Keys) -> Iterator[str]:
    with support.switch(options=keys.options(client_auth=True)) as address:
        yield address


def version(address: str, credentials: grpc.ChannelCredentials | None) -> str:
    """What the server answers, or the code of the failure."""
    with Client(address, open_stream=False, credentials=credentials) as client:
        try:
            return client.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=10).p4runtime_api_version
        except grpc.RpcError as error:
            return error.code().name


def test_a_server_certificate(keys: Keys, program: Program) -> None:
    """Clients who trust its authority are served, and need no certificate; others turn away, and so do those without TLS."""
    with support.switch(options=keys.options(client_auth=False)) as address:
        assert version(address, keys.credentials()) == "1.4.1"
        assert version(address, None) == "UNAVAILABLE"
        assert version(address, keys.credentials(ca=keys.stranger)) == "UNAVAILABLE"
        with Client(address, credentials=keys.credentials()) as client:
            client.push(program.config())
            assert client.config().config.p4_device_config == program.json.read_bytes()


def test_client_certificates(keys: Keys, program: Program, with_client_auth: str) -> None:
    """Only who shows one of the authority's is served."""
    assert version(with_client_auth, keys.credentials()) == "UNAVAILABLE"
    assert version(with_client_auth, keys.credentials(keys.strange_client)) == "UNAVAILABLE"
    assert version(with_client_auth, keys.credentials(keys.client)) == "1.4.1"
    with Client(with_client_auth, credentials=keys.credentials(keys.client)) as client:
        client.push(program.config())


def test_a_certificate_for_something_else_is_no_clients(keys: Keys, with_client_auth: str) -> None:
    """[RFC 5280 sec 4.2.1.12]: a server's certificate of the same authority names no purpose, or another one."""
    for pair in (keys.server, keys.ca.sign("nameless"), keys.ca.sign("other", "serverAuth")):
        assert version(with_client_auth, keys.credentials(pair)) in ("UNAUTHENTICATED", "UNAVAILABLE")
    with Client(with_client_auth, open_stream=False, credentials=keys.credentials(keys.server)) as server:
        for answer in (lambda: server.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=10), server.config):
            support.refused(grpc.StatusCode.UNAUTHENTICATED, answer, "extendedKeyUsage", "clientAuth")
    both = keys.ca.sign("both", "serverAuth,clientAuth")
    assert version(with_client_auth, keys.credentials(both)) == "1.4.1"


def test_finsy(keys: Keys, program: Program, with_client_auth: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    credentials = fy.GRPCCredentialsTLS(cacert=keys.ca.own.certificate, cert=keys.client.certificate, private_key=keys.client.key)
    options = fy.SwitchOptions(
        p4info=program.p4info,
        p4blob=program.json,
        device_id=support.DEVICE_ID,
        fail_fast=True,
        initial_election_id=50,
        channel_credentials=credentials,
    )

    async def session() -> None:
        async with fy.Switch("s1", with_client_auth, options) as switch:
            assert switch.is_primary
            await switch.write([+fy.P4MulticastGroupEntry(7, replicas=[1, 2])])
            assert [group async for group in switch.read(fy.P4MulticastGroupEntry(7))]

    asyncio.run(asyncio.wait_for(session(), timeout=60))


def test_our_controller(keys: Keys, program: Program, with_client_auth: str) -> None:
    """Its client, with certificate and without."""
    tls = Tls(str(keys.ca.own.certificate), str(keys.client.certificate), str(keys.client.key))
    closed: queue.SimpleQueue[str] = queue.SimpleQueue()
    switch = GrpcSwitch("s1", with_client_auth, support.DEVICE_ID, 90, on_message=print, on_closed=closed.put, timeout_s=10.0, tls=tls)
    try:
        switch.connect()
        switch.push_pipeline(P4Info.read(program.p4info).message, program.json, cookie=3)
        assert switch.cookie() == 3
    finally:
        switch.close()
    stranger = GrpcSwitch(
        "s1",
        with_client_auth,
        support.DEVICE_ID,
        91,
        on_message=print,
        on_closed=print,
        timeout_s=1.0,
        tls=Tls(str(keys.stranger.own.certificate)),
    )
    with pytest.raises(SwitchError, match=f"over TLS with a certificate signed by {keys.stranger.own.certificate}"):
        stranger.connect()
    stranger.close()


def test_the_controllers_configuration(tmp_path: Path) -> None:
    """A file that cannot be read is found before anything starts; a key without certificate is refused."""
    config = {"p4info": "x", "bmv2_json": "y", "switches": [{"name": "s1", "device_id": 1, "address": "127.0.0.1:1", "ports": []}]}
    path = tmp_path / "controller.json"
    for tls, message in (
        ({"ca": "/nonexistent/ca.crt"}, "tls.ca: /nonexistent/ca.crt: No such file or directory"),
        ({"ca": "a", "key": "k"}, "certificate: missing"),
        ({}, "tls.ca: missing"),
    ):
        path.write_text(json.dumps(config | {"tls": tls}))
        with pytest.raises(ConfigError) as caught:
            read(path)
        assert f"{path}: " in str(caught.value) and message in str(caught.value)


def test_files_that_do_not_serve(keys: Keys, tmp_path: Path) -> None:
    """Each is named, with what to do."""
    empty = tmp_path / "empty.pem"
    empty.write_text("")

    def said(certificate: Path, key: Path, *more: str) -> str:
        command = [
            support.tool("fairlane-switch", "FAIRLANE_SWITCH"),
            "--no-p4",
            "--",
            "--grpc-server-addr",
            "127.0.0.1:0",
            "--grpc-server-ssl",
            "--grpc-server-cert",
            str(certificate),
            "--grpc-server-key",
            str(key),
            *more,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
        return done.stderr

    server = keys.server
    start = "fairlane-switch: --grpc-server-ssl: "
    assert said(tmp_path / "none.crt", server.key) == f"{start}{tmp_path}/none.crt: No such file or directory (os error 2)\n"
    assert said(empty, server.key).startswith(f"{start}{empty}: there is no certificate in it: give a PEM file")
    assert said(server.certificate, server.certificate).startswith(f"{start}{server.certificate}: there is no private key in it")
    mismatch = said(server.certificate, keys.client.key)
    assert mismatch.startswith(f"{start}{keys.client.key}: does not serve with the certificate {server.certificate} (")
    assert "give the key that it was made with" in mismatch
    wrong_ca = said(server.certificate, server.key, "--grpc-server-with-client-auth", "--grpc-server-cacert", str(empty))
    assert wrong_ca.startswith(f"{start}{empty}: there is no certificate in it")
