"""The identity of this process in the leader election."""

import fcntl
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LOCK_NAME = "fleet-reconciler.lock"


@contextmanager
def election_identity(
    environ: Mapping[str, str] = os.environ,  # noqa: TID251 - set by the manifest
    folder: Path | None = None,
) -> Iterator[str]:
    """Yield the pod's name and uid for the first process of a pod, else a name used once.

    A container that is restarted in its pod is the same candidate as before and takes its own Lease
    back at once: the kubelet starts it after the previous one has ended. A second process in the
    pod (`kubectl exec`) inherits the same environment and must not be the same candidate, so the
    name is bound to a file lock, which the kernel releases when the process ends.

    Args:
        environ: With POD_NAME and POD_UID where the manifest's Deployment set them.
        folder: For the lock file; default: the folder for temporary files.
    """
    name, uid = environ.get("POD_NAME", ""), environ.get("POD_UID", "")
    lock = _locked((folder or Path(tempfile.gettempdir())) / LOCK_NAME) if name and uid else None
    try:
        if lock is not None:
            yield f"{name}_{uid}"
        else:
            yield f"{socket.gethostname()}_{secrets.token_hex(4)}"
    finally:
        if lock is not None:
            os.close(lock)


def _locked(path: Path) -> int | None:
    """Return the open file, locked for this process; None when it cannot be locked."""
    try:
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
