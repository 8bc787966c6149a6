"""Botocore reads its descriptions of services once for each process that imports this.

Otherwise each session reads them again: a fifth of a second of CPU time for a client of EC2, and
tests make thousands of clients.
"""

from functools import cache

import pytest
from botocore.loaders import create_loader

pytest.MonkeyPatch().setattr("botocore.session.create_loader", cache(create_loader))
