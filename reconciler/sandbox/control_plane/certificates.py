"""A throw-away certificate authority for one control plane."""

from datetime import datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_DAYS = 2


class Authority:
    """Writes `<name>.crt` and `<name>.key` files, readable by their owner only.

    Args:
        directory: Where they go; it exists.
        now: The clock, aware UTC.
    """

    def __init__(self, directory: Path, now: datetime) -> None:
        self._directory = directory
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("e2e-ca")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
        )
        self._write("ca", builder, self._key)

    def client(self, file: str, user: str, group: str = "") -> None:
        """Create a client certificate; RBAC uses its user and group."""
        self._issue(file, _named(user, group), ExtendedKeyUsageOID.CLIENT_AUTH)

    def server(self, file: str) -> None:
        """Create the API server's certificate, for loopback and the names that pods use."""
        names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
        addresses = (IPv4Address("127.0.0.1"), IPv4Address("10.96.0.1"))
        general = [*map(x509.DNSName, names), *map(x509.IPAddress, addresses)]
        self._issue(
            file,
            _named("kube-apiserver"),
            ExtendedKeyUsageOID.SERVER_AUTH,
            x509.SubjectAlternativeName(general),
        )

    def signing_key(self, name: str) -> None:
        """Create the key pair `<name>.key` and `<name>.pub` for service account tokens."""
        key = ec.generate_private_key(ec.SECP256R1())
        self._write_key(name, key)
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (self._directory / f"{name}.pub").write_bytes(public)

    def _builder(
        self, name: x509.Name, public_key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - timedelta(days=1))
            .not_valid_after(self._now + timedelta(days=_VALID_DAYS))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        )

    def _issue(
        self,
        file: str,
        name: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(name, key.public_key()).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        self._write(file, builder, key)

    def _write(
        self, file: str, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey
    ) -> None:
        certificate = builder.sign(self._key, hashes.SHA256())
        (self._directory / f"{file}.crt").write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
        )
        self._write_key(file, key)

    def _write_key(self, file: str, key: ec.EllipticCurvePrivateKey) -> None:
        path = self._directory / f"{file}.key"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )


def _named(user: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)
