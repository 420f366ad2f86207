# The build context holds the static binaries: make build && docker build -f Dockerfile dist/image
FROM scratch
LABEL org.opencontainers.image.title="mcptest-operator" \
      org.opencontainers.image.description="Grades LLM answers with rubrics, as Kubernetes resources" \
      org.opencontainers.image.source="https://github.com/mcptest/mcptest-operator" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY manager runner /
USER 65532:65532
ENTRYPOINT ["/manager"]
