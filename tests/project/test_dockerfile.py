"""The Dockerfile: rules that a reviewer would check; its steps outside of a container engine."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.dockerfile import ROOT, ours, stages

NOBODY = 65532
INDEX_IS_AWAY = ("Failed to establish a new connection", "Temporary failure in name resolution")


def test_base_images_are_pinned_to_a_patch_release_or_a_digest() -> None:
    """An image that changes under its tag is another program on the next node."""
    for stage in ours():
        pinned = re.search(r"@sha256:[0-9a-f]{64}$|:\d+\.\d+\.\d+[-\w.]*$", stage.image)
        assert pinned, stage.image


def test_a_release_can_name_its_base_image_by_digest() -> None:
    """A patch release's tag is built again for every fix of the distribution under it."""
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"(?m)^FROM (\S+)", text) == ["${BASE}"] * 2
    digest = "python:3.13.9-slim-trixie@sha256:" + "0" * 64
    given = re.sub(r"(?m)^ARG BASE=.*$", f"ARG BASE={digest}", text)
    assert {stage.image for stage in stages(given)} == {digest}


def test_final_stage_has_what_documented_remotes_and_keys_need() -> None:
    """The image of a loop with an ssh remote started, and failed at its first fetch."""
    (installed,) = re.findall(r"apt-get install (?:--\S+ )*([^&]*)", " ".join(ours()[-1].of("RUN")))
    assert {"git", "openssh-client", "ca-certificates", "tini"} == set(installed.split())


def test_all_stages_have_the_same_python() -> None:
    """A virtual environment runs only on the Python that it was made with."""
    assert len({stage.image for stage in ours()}) == 1


def test_image_runs_as_a_number_that_is_not_root() -> None:
    """Kubernetes refuses runAsNonRoot for a user that it only knows by name."""
    user = ours()[-1].of("USER")[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    template = (ROOT / "templates" / "install" / "deployment.yaml.j2").read_text()
    assert f"runAsUser: {user.partition(':')[0]}\n" in template


def test_user_of_the_image_is_known_to_ssh_with_a_home_that_it_may_write(tmp_path: Path) -> None:
    """Without a line in /etc/passwd, ssh and ssh-keygen end with `No user exists for uid 65532`."""
    final = ours()[-1]
    parts = [part for run in final.of("RUN") for part in run.split("&&") if ">> /etc/" in part]
    command = " && ".join(parts).replace("/etc/", f"{tmp_path}/")
    subprocess.run(["/bin/sh", "-euc", command], check=True, timeout=60)
    uid, _, gid = final.of("USER")[-1].partition(":")
    name, _, *ids, _, home, _ = (tmp_path / "passwd").read_text().rstrip("\n").split(":")
    assert ids == [uid, gid]
    assert (tmp_path / "group").read_text() == f"{name}:x:{gid}:\n"
    assert f"HOME={home}" in final.of("ENV")[-1].split()


def test_every_package_has_a_hash_or_comes_from_the_build() -> None:
    """A package index that is taken over must not be able to change the image."""
    for stage in ours():
        for command in stage.of("RUN"):
            for part in command.split("&&"):
                if re.search(r"\bpip\b.*\b(install|wheel|download)\b", part):
                    assert "--require-hashes" in part or "--no-index" in part, part


def test_final_stage_has_no_tools_to_install_more() -> None:
    """What an intruder needs first is a package manager for his own tools."""
    final = ours()[-1]
    commands = " ".join(final.of("RUN"))
    assert not re.search(
        r"\bpip\b.*\binstall\b|\bgcc\b|build-essential|\bcurl\b|\bwget\b", commands
    )
    assert "/usr/local/bin/pip*" in commands
    assert "ensurepip" in commands
    assert not final.of("ADD")


def test_system_packages_leave_nothing_behind() -> None:
    """Recommended packages and package lists double an image for nothing."""
    for command in ours()[-1].of("RUN"):
        if "apt-get install" in command:
            assert "--no-install-recommends" in command
            assert "rm -rf /var/lib/apt/lists/*" in command


def test_no_secret_and_no_shell_form() -> None:
    """A value in a layer is public; a shell as process 1 swallows SIGTERM."""
    for stage in ours():
        for word, arguments in stage.instructions:
            assert not re.search(r"(?i)password|secret|token|access_key", f"{word} {arguments}")
    (entry,) = ours()[-1].of("ENTRYPOINT")
    assert json.loads(entry)[-1] == "/opt/reconciler/bin/reconciler"


def test_first_process_takes_up_what_a_helper_leaves() -> None:
    """A git past its time limit leaves a helper; tini keeps it from staying a zombie."""
    (entry,) = ours()[-1].of("ENTRYPOINT")
    assert json.loads(entry)[:-1] == ["/usr/bin/tini", "-s", "--"]


def test_context_is_what_is_copied_and_nothing_else() -> None:
    """.git, state files and virtual environments are large, and some of them are secret."""
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    for copied in ours()[0].of("COPY"):
        for source in copied.split()[:-1]:
            assert (ROOT / source).exists(), source
            parts = source.strip("/").split("/")
            assert any("/".join(parts[:n]) in allowed for n in range(1, len(parts) + 1)), source


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """A folder that other users may look into; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in [folder, *(p for p in folder.rglob("*") if p.is_dir() and not p.is_symlink())]:
            path.chmod(0o755)


def _interpreter() -> str:
    """A Python that every user of this machine may start."""
    if os.geteuid() != 0:
        return sys.executable
    candidates = [sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"]
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    for candidate in candidates:
        try:
            done = subprocess.run([candidate, "-c", check], user=NOBODY, check=False, cwd="/")
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    pytest.skip("there is no Python 3.11 or newer that another user than root may start")


def _base(folder: Path) -> Path:
    """A stand-in for the base image's Python: an environment with pip."""
    base = folder / "base"
    command = [_interpreter(), "-m", "venv", "--without-pip", "--copies", str(base)]
    subprocess.run(command, check=True, timeout=60)
    import ensurepip  # noqa: PLC0415 - some distributions leave it out

    (bundled,) = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    argv = [sys.executable, "-m", "pip", "--python", str(base / "bin" / "python")]
    subprocess.run([*argv, "install", "--quiet", "--no-index", str(bundled)], check=True)
    return base / "bin"


@pytest.fixture(scope="module")
def image(open_folder: Path) -> Path:
    """`/opt/reconciler` as the build stage makes it, read-only."""
    build, target = open_folder / "build", open_folder / "opt" / "reconciler"
    build.mkdir()
    target.parent.mkdir()
    stage = ours()[0]
    path = f"{_base(open_folder)}:{os.defpath}"
    inherited = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "SSL_", "HTTP"))}  # noqa: TID251 - how the index is reached
    environment = {**inherited, "PATH": path, "HOME": str(open_folder), "PIP_NO_CACHE_DIR": "1"}
    for word, arguments in stage.instructions:
        if word == "COPY":
            _copy(arguments, build)
        elif word == "RUN":
            command = arguments.replace("/opt/reconciler", str(target))
            done = subprocess.run(
                ["/bin/sh", "-euc", command],
                cwd=build,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=280,
            )
            if done.returncode and any(each in done.stderr for each in INDEX_IS_AWAY):
                pytest.skip("no package index answers: the image cannot be built here")
            assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    for each in [target, *target.rglob("*")]:
        if not each.is_symlink():
            each.chmod(each.stat().st_mode & ~0o222)
    return target


def _copy(arguments: str, build: Path) -> None:
    *sources, destination = arguments.split()
    for source in sources:
        found = ROOT / source
        to = build / destination
        if found.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", ".terraform")
            shutil.copytree(found, to, dirs_exist_ok=True, ignore=ignored)
        else:
            shutil.copy(found, to / found.name if destination.endswith("/") else to)


def _run(image: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The entry point as the container's user, with nothing of ours around it."""
    return subprocess.run(
        [str(image / "bin" / "reconciler"), *arguments],
        cwd="/",
        env={"PATH": f"{image}/bin:{os.defpath}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp"},  # noqa: S108 - as in the image
        user=NOBODY if os.geteuid() == 0 else None,
        group=NOBODY if os.geteuid() == 0 else None,
        extra_groups=[] if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.timeout(600)
def test_image_runs_as_its_user_from_a_read_only_tree(image: Path) -> None:
    """A program that writes beside itself, or needs root, ends in CrashLoopBackOff."""
    done = _run(image, "--help")
    assert done.returncode == 0, done.stderr
    assert "Run the capacity loop" in done.stdout
    assert not (image / "bin" / "pip").exists()


@pytest.mark.timeout(600)
def test_image_carries_its_templates_and_examples(image: Path, open_folder: Path) -> None:
    """What is missing in the image is found out by the first command in the cluster."""
    config = open_folder / "sectors.yaml"
    shutil.copy(ROOT / "docs" / "examples" / "demo" / "sectors.yaml", config)
    config.chmod(0o644)
    done = _run(image, "manifest", "--image", "example/i:1", "--config", str(config))
    assert done.returncode == 0, done.stderr
    assert "kind: Deployment" in done.stdout
    refused = _run(image, "run", "--config", str(config), "--once", "--kubeconfig", "/nowhere")
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: /nowhere"), refused.stderr
