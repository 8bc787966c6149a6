"""HCL expressions that mean exactly the value."""

import pytest

from reconciler.gitops.rendering.hcl import to_hcl


@pytest.mark.parametrize(
    ("value", "expression"),
    [
        ("plain", '"plain"'),
        ('say "hi"', r'"say \"hi\""'),
        ("back\\slash", r'"back\\slash"'),
        ("two\nlines\r\tand a tab", r'"two\nlines\r\tand a tab"'),
        ("bell\b form\f nul\0", r'"bell\u0008 form\u000c nul\u0000"'),
        ('${file("/etc/passwd")}', r'"$${file(\"/etc/passwd\")}"'),
        ("%{ if true }", '"%%{ if true }"'),
        ("$${x} and $x {y}", '"$$${x} and $x {y}"'),
        ("ünïcode 😀", '"ünïcode 😀"'),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (None, "null"),
        ({"b": "2", "a": True}, '{ "a" = true, "b" = "2" }'),
    ],
)
def test_to_hcl_of_a_value_is_its_literal(value: object, expression: str) -> None:
    """A text that Terraform evaluates could read files of the machine that plans."""
    assert to_hcl(value) == expression


def test_to_hcl_of_a_float_is_refused() -> None:
    """A float would not be the number that was written in the config."""
    with pytest.raises(TypeError, match="float"):
        to_hcl(0.1)
