"""Certificates of an authority of a test's own; moto brings ``cryptography``."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM


@dataclass
class Authority:
    """An authority, and the folder of what it issues."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    @property
    def certificate(self) -> Path:
        """Its own certificate, in PEM."""
        place = self.folder / f"{self.name}.pem"
        if not place.exists():
            issued = self._builder(self.name, self.key.public_key())
            issued = issued.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
            place.write_bytes(issued.sign(self.key, hashes.SHA256()).public_bytes(_PEM))
        return place

    def issue(self, name: str, password: bytes | None = None) -> Path:
        """A certificate for 127.0.0.1 with its key, in one file of PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        hosts = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        issued = self._builder(name, key.public_key())
        issued = issued.add_extension(x509.SubjectAlternativeName(hosts), False)
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password)
        private = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, encryption)
        place = self.folder / f"{self.name}-{name}.pem"
        place.write_bytes(issued.sign(self.key, hashes.SHA256()).public_bytes(_PEM) + private)
        return place

    def _builder(self, name: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)]))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + dt.timedelta(days=1))
        )
