"""How rendered HCL is read back without Terraform."""

import json
import re

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def read_hcl(quoted: str) -> str:
    """What an HCL quoted text means; fails on anything that HCL would evaluate."""
    bare = quoted.replace("$${", "").replace("%%{", "")
    assert "${" not in bare, quoted
    assert "%{" not in bare, quoted
    text: str = json.loads(f'"{quoted}"')
    return text.replace("$${", "${").replace("%%{", "%{")


def skeleton(content: bytes) -> str:
    """A file of HCL without what its quoted texts say."""
    return STRING.sub('""', content.decode())
