package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func dockerfile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheDockerfileIsAccepted(t *testing.T) {
	if findings, err := checkDockerfile([]byte(dockerfile(t))); err != nil || len(findings) > 0 {
		t.Error(findings, err)
	}
}

func TestASpoiledDockerfileIsRefused(t *testing.T) {
	tests := map[string]struct{ from, to, want string }{
		"lint":             {"AS build", "as build", "FromAsCasing"},
		"undefined":        {"\"${VERSION}\"", "\"${VERSIO}\"", "UndefinedVar"},
		"shell form":       {`ENTRYPOINT ["/usr/bin/informer"]`, "ENTRYPOINT /usr/bin/informer", "JSONArgsRecommended"},
		"no such stage":    {"--from=build", "--from=builder /out/x /y\nCOPY --from=build", "the last stage copies"},
		"newest base":      {"static-debian13:nonroot\nARG", "static-debian13\nARG", "static-debian13 is whatever is newest"},
		"another base":     {"static-debian13:nonroot\nARG", "cc-debian13:nonroot\nARG", "its base is cc-debian13:nonroot"},
		"another build":    {"$(release/binary ", "$(cargo build ", "does not build with release/binary"},
		"a shell":          {"EXPOSE 8443", `RUN ["/bin/sh"]`, "the last stage runs a command"},
		"the sources":      {"EXPOSE 8443", "COPY . /src", "the last stage copies from the sources"},
		"a download":       {"EXPOSE 8443", "ADD https://example.com/x /x", "the last stage adds files"},
		"root":             {"USER 65532:65532", "USER root", "it runs as user root"},
		"another program":  {`ENTRYPOINT ["/usr/bin/informer"]`, `ENTRYPOINT ["/bin/sh"]`, `it starts ["/bin/sh"]`},
		"a missing label":  {"      org.opencontainers.image.licenses=\"Apache-2.0\" \\\n", "", "no label org.opencontainers.image.licenses"},
		"a password":       {"ARG REVISION=unknown", "ARG REVISION=unknown\nARG API_TOKEN", "SecretsUsedInArgOrEnv"},
		"no such command":  {"EXPOSE 8443", "EXPOS 8443", "unknown instruction"},
		"a relative place": {"WORKDIR /src", "WORKDIR src", "WorkdirRelativePath"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			findings, err := checkDockerfile([]byte(replace(t, dockerfile(t), test.from, test.to)))
			if err != nil {
				findings = append(findings, err.Error())
			}
			wantFinding(t, findings, test.want)
		})
	}
}

func TestVersionsThatDifferAreRefused(t *testing.T) {
	cargo := "[workspace.package]\nversion = \"0.2.0\"\nrust-version = \"1.89\"\n"
	if findings := checkVersions(cargo, "appVersion: 0.2.0\n", "ARG VERSION=0.2.0\nARG RUST_VERSION=1.100\n"); len(findings) > 0 {
		t.Error(findings)
	}
	wantFinding(t, checkVersions(cargo, "appVersion: 0.1.0\n", "ARG VERSION=0.2.0\nARG RUST_VERSION=1.89\n"), "appVersion in Chart.yaml is 0.1.0")
	wantFinding(t, checkVersions(cargo, "appVersion: 0.2.0\n", "ARG VERSION=0.1.0\nARG RUST_VERSION=1.89\n"), "VERSION in the Dockerfile is 0.1.0")
	wantFinding(t, checkVersions(cargo, "appVersion: 0.2.0\n", "ARG VERSION=0.2.0\nARG RUST_VERSION=1.88\n"), "builds with Rust 1.88")
	wantFinding(t, checkVersions(cargo, "", "ARG VERSION=0.2.0\nARG RUST_VERSION=1.89\n"), "no version in Chart.yaml")
}

func TestTheContextHasWhatTheIgnoreFileLetsThrough(t *testing.T) {
	root, into := t.TempDir(), t.TempDir()
	for _, path := range []string{"Cargo.toml", "README.md", "crates/a/lib.rs", "crates/a/target/x", "e2e/kinds/lib.rs", "e2e/kubectl/run", ".git/config"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := copyContext(root, "../Dockerfile.dockerignore", into)
	if err != nil || files != 3 {
		t.Fatal(files, err)
	}
	var copied []string
	for _, path := range []string{"Cargo.toml", "crates/a/lib.rs", "e2e/kinds/lib.rs"} {
		text, err := os.ReadFile(filepath.Join(into, path))
		if err != nil {
			t.Fatal(err)
		}
		copied = append(copied, string(text))
	}
	if !slices.Equal(copied, []string{"Cargo.toml", "crates/a/lib.rs", "e2e/kinds/lib.rs"}) {
		t.Error(copied)
	}
}
