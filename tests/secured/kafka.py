"""A real Kafka that lets nobody in without a password, a token or a certificate, and asks its ACLs then.

Its plain listener, on this machine only, is the owner's: who comes by it may do all.
"""

import asyncio
import secrets
import subprocess
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import trustme
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from streams.access import Access
from streams.acls import Acl
from streams.broker.install import install
from streams.broker.kafka import Kafka, java_environment
from streams.broker.node import HOST, free_port, start_node
from streams.settings import Settings
from tests.secured.token_endpoint import TokenEndpoint

USERS = ("worker", "submitter", "reader", "watcher", "operator", "auditor", "stranger")


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A running broker with its doors.

    Attributes:
        open: Where the owner comes in.
        sasl: Where users come in, by TLS and SASL of any mechanism.
        mutual: Where clients with a certificate come in.
        plain: Where users come in by SASL without TLS.
        passwords: By user, for PLAIN and SCRAM.
        files: Certificates and keys, PEM, by what they are.
        log: The broker's, with each decision of its authoriser.
        stop: Stops it.
    """

    open: str
    sasl: str
    mutual: str
    plain: str
    passwords: Mapping[str, str]
    files: Mapping[str, Path]
    log: Path
    stop: Callable[[], Awaitable[None]]

    def by_password(self, user: str, *, mechanism: str = "SCRAM-SHA-512", **others: Any) -> Settings:
        """Settings of a user with a password."""
        access = Access(
            protocol="SASL_SSL",
            mechanism=mechanism,
            user=user,
            password=self.passwords[user],
            ca_file=str(self.files["ca"]),
        )
        return Settings(**{"brokers": self.sasl, "access": access, **others})

    def by_certificate(self, **others: Any) -> Settings:
        """Settings of the client that the certificate names."""
        access = Access(
            protocol="SSL",
            ca_file=str(self.files["ca"]),
            certificate_file=str(self.files["certificate"]),
            key_file=str(self.files["key"]),
        )
        return Settings(**{"brokers": self.mutual, "access": access, **others})

    def by_token(self, endpoint: TokenEndpoint, client: str, **others: Any) -> Settings:
        """Settings of a client that gets tokens from an endpoint."""
        access = Access(
            protocol="SASL_SSL",
            mechanism="OAUTHBEARER",
            ca_file=str(self.files["ca"]),
            token_url=endpoint.url,
            client_id=client,
            client_secret=endpoint.secrets[client],
        )
        return Settings(**{"brokers": self.sasl, "access": access, **others})


def make_files(directory: Path) -> dict[str, Path]:
    """An authority, the broker's certificate by it, and a client's one."""
    authority = trustme.CA()
    server, client = (
        authority.issue_cert(HOST, "localhost"),
        authority.issue_cert("certified.test", common_name="certified"),
    )
    stranger = trustme.CA()
    files = {name: directory / f"{name}.pem" for name in ("ca", "server", "certificate", "key", "foreign-ca")}
    authority.cert_pem.write_to_path(files["ca"])
    stranger.cert_pem.write_to_path(files["foreign-ca"])
    for cert, own in ((server, files["server"]), (client, files["key"])):
        key = load_pem_private_key(cert.private_key_pem.bytes(), None)
        own.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with files["server"].open("ab") as file:
        file.writelines(pem.bytes() for pem in server.cert_chain_pems)
    files["certificate"].write_bytes(b"".join(pem.bytes() for pem in client.cert_chain_pems))
    return files


def properties(files: Mapping[str, Path], ports: Mapping[str, int]) -> dict[str, str]:
    """Kafka's own properties of such a broker."""
    login = "org.apache.kafka.common.security"
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files["server"]),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files["ca"]),
    }
    sasl = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "scram-sha-256.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
        "scram-sha-512.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
        "plain.sasl.jaas.config": f'{login}.plain.PlainLoginModule required user_plain="plain-password-1";',
        "oauthbearer.sasl.jaas.config": (
            f'{login}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
        ),
        # Takes tokens without a signature: what is tried here is how the client gets and sends them.
        "oauthbearer.sasl.server.callback.handler.class": (
            f"{login}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
        ),
    }
    of_listeners = {"sasl": tls | sasl, "plain": sasl, "mutual": tls | {"ssl.client.auth": "required"}}
    listeners = ",".join(f"{name.upper()}://{HOST}:{port}" for name, port in ports.items())
    return {
        "controller.quorum.voters": f"1@{HOST}:{ports['controller']}",
        "listeners": listeners.replace("OPEN:", "PLAINTEXT:"),
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_SSL,PLAIN:SASL_PLAINTEXT,MUTUAL:SSL"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
        **{
            f"listener.name.{name}.{key}": value
            for name, own in of_listeners.items()
            for key, value in own.items()
        },
    }


async def start(home: Path, directory: Path) -> Secured:
    """Start one, with everything of it under *directory*."""
    files = await asyncio.to_thread(make_files, directory)
    ports: dict[str, int] = {}
    for name in ("open", "sasl", "plain", "mutual", "controller"):
        ports[name] = free_port(but=ports.values())
    own = properties(files, ports)
    kafka = _auditing(await install(home), directory)
    passwords = {user: secrets.token_urlsafe(18) for user in USERS} | {"plain": "plain-password-1"}
    data = directory / "data"
    await _format(kafka, data, own, passwords)
    node = await start_node(kafka, data, port=ports["open"], properties=own)
    doors = {name: f"{HOST}:{port}" for name, port in ports.items() if name != "controller"}
    return Secured(**doors, passwords=passwords, files=files, log=data / "broker.log", stop=node.stop)


def _auditing(kafka: Kafka, directory: Path) -> Kafka:
    """The same, with each decision of the authoriser in the broker's log."""
    jar = directory / "audit.jar"
    with zipfile.ZipFile(jar, "w") as file:
        file.writestr("simplelogger.properties", "org.slf4j.simpleLogger.log.kafka.authorizer.logger=debug\n")
    return replace(kafka, jars=(*kafka.jars, jar))


async def _format(kafka: Kafka, data: Path, own: Mapping[str, str], passwords: Mapping[str, str]) -> None:
    """With the users in it from the first start: their passwords are part of the cluster's metadata."""
    (data / "tmp").mkdir(parents=True)
    config = data / "format.properties"
    base = {"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER"}
    lines = (base | {"log.dirs": str(data / "logs")} | dict(own)).items()
    config.write_text("".join(f"{name}={value}\n" for name, value in lines), encoding="utf-8")
    users = [
        f"{mechanism}=[name={user},password={password}]"
        for user, password in passwords.items()
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        if user != "plain"
    ]
    arguments = ["format", "-t", "AnabranchEmbeddedKafka", "-c", str(config)]
    arguments += [word for user in users for word in ("--add-scram", user)]
    command = kafka.command("kafka.tools.StorageTool", *arguments, temporary=data / "tmp")
    done = await asyncio.to_thread(
        subprocess.run, command, env=java_environment(), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


_RESOURCES = {"topic": 2, "group": 3, "transactional-id": 5}
_PATTERNS = {"literal": 3, "prefixed": 4}
_OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Describe": 8, "DescribeConfigs": 10}
_ALLOW = 3
_ANY = 1
HOLD_S = 30.0


@asynccontextmanager
async def owner(secured: Secured) -> AsyncIterator[AIOKafkaAdminClient]:
    """Whoever may do all."""
    client = AIOKafkaAdminClient(bootstrap_servers=secured.open)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def allow(secured: Secured, user: str, granted: Iterable[Acl]) -> None:
    """Give a user these ACLs (KIP-140, KIP-290); they hold once this returns."""
    wanted = [
        (
            *(_RESOURCES[acl.resource], acl.name, _PATTERNS[acl.pattern], f"User:{user}", "*"),
            *(_OPERATIONS[acl.operation], _ALLOW),
        )
        for acl in granted
    ]
    async with owner(secured) as client:
        answer = await client._send_request(_Create(wanted))
        assert all(code == 0 for code, _ in answer.creation_responses), answer
        # Answered once it is decided; the authoriser hears of it a moment later.
        async with asyncio.timeout(HOLD_S):
            while not await _hold(client, user, wanted):
                await asyncio.sleep(0.02)


async def _hold(client: AIOKafkaAdminClient, user: str, wanted: Sequence[tuple[Any, ...]]) -> bool:
    asked = DescribeAclsRequest(_ANY, None, _ANY, f"User:{user}", None, _ANY, _ANY)
    answer = await client._send_request(asked)
    there = {
        (resource, name, pattern, principal, host, operation, permission)
        for resource, name, pattern, acls in answer.resources
        for principal, host, operation, permission in acls
    }
    return there >= set(wanted)


class _Create(CreateAclsRequest):  # type: ignore[misc]  # aiokafka has no types
    """Many at once, which aiokafka's own does not offer."""

    def __init__(self, wanted: Sequence[tuple[Any, ...]]) -> None:
        self._wanted = list(wanted)

    def build(self, request_struct_class: Any) -> Any:
        return request_struct_class(self._wanted)
