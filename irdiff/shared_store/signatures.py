"""Who wrote a pack: an Ed25519 signature of where it belongs and of its digest.

With a public key (IRDIFF_STORE_PUBLIC_KEY) a reader takes signed packs alone, so that not even who can write
to the bucket can pass off anything as a result. Without one, who may write is for the bucket's own rules.
"""

from __future__ import annotations

from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from irdiff.errors import UsageError

UNSIGNED = "unsigned"


class Signer:
    """Signs with a private key, where there is one."""

    def __init__(self, private_key: str | None) -> None:
        self._key = SigningKey(_bytes(private_key, "IRDIFF_STORE_SIGNING_KEY")) if private_key else None

    def sign(self, scope: str, digest: str) -> str:
        """Hexadecimal; `unsigned` without a key."""
        return self._key.sign(_message(scope, digest)).signature.hex() if self._key else UNSIGNED


class Verifier:
    """Checks against a public key; takes everything where there is none."""

    def __init__(self, public_key: str | None) -> None:
        self._key = VerifyKey(_bytes(public_key, "IRDIFF_STORE_PUBLIC_KEY")) if public_key else None

    def accepts(self, scope: str, digest: str, signature: str) -> bool:
        if self._key is None:
            return True
        try:
            self._key.verify(_message(scope, digest), bytes.fromhex(signature))
        except (CryptoError, ValueError, TypeError):
            return False
        return True


def new_keys() -> tuple[str, str]:
    """A private key and its public one, hexadecimal."""
    key = SigningKey.generate()
    return key.encode().hex(), key.verify_key.encode().hex()


def _message(scope: str, digest: str) -> bytes:
    return f"irdiff-pack/1\n{scope}\n{digest}".encode()


def _bytes(key: str, variable: str) -> bytes:
    try:
        found = bytes.fromhex(key.strip())
    except ValueError:
        found = b""
    if len(found) != 32:
        raise UsageError(
            f"{variable} is not a key of 64 hexadecimal digits", hint="make one: irdiff store key"
        )
    return found
