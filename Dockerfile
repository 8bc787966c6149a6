# The reconciler's image. Build it with
#   docker build --tag REGISTRY/fleet-reconciler:VERSION .
# Nothing is downloaded that requirements/*.txt does not name with its hash. A release names the base
# image by its digest too:
#   docker buildx imagetools inspect python:3.13.9-slim-trixie --format '{{.Manifest.Digest}}'
#   docker build --build-arg BASE=python:3.13.9-slim-trixie@sha256:… --tag … .
ARG BASE=python:3.13.9-slim-trixie

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY requirements/ requirements/
RUN python -m pip install --require-hashes -r requirements/build.txt
# Sources are built with what was just installed: an isolated build would fetch tools without hashes.
RUN python -m pip wheel --no-build-isolation --require-hashes -r requirements/runtime.txt --wheel-dir wheels
COPY pyproject.toml README.md LICENSE ./
COPY reconciler/ reconciler/
COPY templates/ templates/
COPY terraform/ terraform/
COPY docs/examples/ docs/examples/
RUN python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir wheels .
RUN python -m venv --without-pip /opt/reconciler \
    && python -m pip --python /opt/reconciler/bin/python install --no-index --no-deps wheels/*.whl

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="fleet-reconciler" \
    org.opencontainers.image.description="Node autoscaler for EKS on EC2 Fleets and Auto Scaling groups" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
# The second loop calls git, and ssh for ssh remotes; ssh-keygen signs its commits. Both refuse a user without a line
# in /etc/passwd, and take the home from there. tini takes up the helpers that a git past its time limit leaves.
# Debian keeps one version per release: a pinned one would vanish.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git ca-certificates openssh-client tini \
    && rm -rf /var/lib/apt/lists/* \
    && rm -rf /usr/local/bin/pip* /usr/local/lib/python3.13/ensurepip \
        /usr/local/lib/python3.13/site-packages/pip* \
    && echo 'fleet-reconciler:x:65532:' >> /etc/group \
    && echo 'fleet-reconciler:x:65532:65532::/tmp:/usr/sbin/nologin' >> /etc/passwd
COPY --from=build /opt/reconciler /opt/reconciler
ENV PATH=/opt/reconciler/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/tmp
# A number: Kubernetes cannot tell from a name that it is not root.
USER 65532:65532
EXPOSE 9235
# -s: also where pods share the process namespace, and something else is process 1.
ENTRYPOINT ["/usr/bin/tini", "-s", "--", "/opt/reconciler/bin/reconciler"]
CMD ["--help"]
