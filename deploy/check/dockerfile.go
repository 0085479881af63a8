package main

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerui"
	spec "github.com/moby/docker-image-spec/specs-go/v1"
	"github.com/opencontainers/go-digest"
)

var imageLabels = []string{"title", "description", "licenses", "version", "revision", "base.name"}

// checkDockerfile says what BuildKit's own linter finds, and what is wrong with the image that would come out.
func checkDockerfile(text []byte) (findings []string, err error) {
	options := dockerfile2llb.ConvertOpt{
		Config:       dockerui.Config{LinterConfig: &linter.Config{ExperimentalAll: true}},
		MetaResolver: emptyImages{},
		AllStages:    true,
		Warn: func(rule, _, _, detail string, at []parser.Range) {
			findings = append(findings, fmt.Sprintf("line %d: %s: %s", at[0].Start.Line, rule, detail))
		},
	}
	built, err := dockerfile2llb.Dockerfile2LLB(context.Background(), text, options)
	if err != nil {
		return findings, err
	}
	stageFindings, err := checkStages(text)
	return slices.Concat(findings, stageFindings, checkImage(built.Image.Config)), err
}

// checkStages looks at how the image is built.
func checkStages(text []byte) (findings []string, err error) {
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, err
	}
	must := func(holds bool, finding string) {
		if !holds {
			findings = append(findings, finding)
		}
	}
	must(len(stages) > 1, "it has one stage only: the compiler would be in the image")
	for _, stage := range stages {
		name := path.Base(stage.BaseName)
		must(strings.ContainsAny(name, ":@") && !strings.HasSuffix(name, ":latest"), stage.BaseName+" is whatever is newest")
	}
	var copied []string
	for _, command := range stages[len(stages)-1].Commands {
		switch command := command.(type) {
		case *instructions.RunCommand:
			must(false, "the last stage runs a command: there is no shell in it")
		case *instructions.AddCommand:
			must(false, "the last stage adds files: only the binary belongs there")
		case *instructions.CopyCommand:
			must(command.From != "", "the last stage copies from the sources")
			copied = append(copied, command.SourcePaths...)
		}
	}
	must(len(copied) == 1 && path.Base(copied[0]) == "informer", fmt.Sprintf("the last stage copies %v: only the binary belongs there", copied))
	must(strings.Contains(string(text), "$(release/binary "), "it does not build with release/binary, as a release is")
	base := path.Base(stages[len(stages)-1].BaseName)
	must(strings.HasPrefix(base, "static-"), "its base is "+base+": a static binary needs distroless/static, which has root certificates")
	return findings, nil
}

// checkImage looks at the configuration of the image that comes out.
func checkImage(config spec.DockerOCIImageConfig) (findings []string) {
	must := func(holds bool, finding string) {
		if !holds {
			findings = append(findings, finding)
		}
	}
	must(config.User == "65532:65532", "it runs as user "+config.User+", not as 65532:65532")
	must(len(config.Entrypoint) == 1 && path.Base(config.Entrypoint[0]) == "informer", fmt.Sprintf("it starts %q, not informer", config.Entrypoint))
	for _, label := range imageLabels {
		must(config.Labels["org.opencontainers.image."+label] != "", "it has no label org.opencontainers.image."+label)
	}
	return findings
}

// emptyImages stands in for a registry: every base image exists and is empty.
type emptyImages struct{}

func (emptyImages) ResolveImageConfig(_ context.Context, ref string, opt sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	config := []byte(`{"architecture":"amd64","os":"linux","config":{}}`)
	if platform := opt.ImageOpt; platform != nil && platform.Platform != nil {
		config = fmt.Appendf(nil, `{"architecture":%q,"os":%q,"config":{}}`, platform.Platform.Architecture, platform.Platform.OS)
	}
	return ref, "", config, nil
}

// checkVersions says where chart, image and workspace have different versions.
func checkVersions(cargo, chart, dockerfile string) (findings []string) {
	find := func(name, pattern, text string) string {
		if match := regexp.MustCompile(pattern).FindStringSubmatch(text); match != nil {
			return match[1]
		}
		findings = append(findings, "no version in "+name)
		return ""
	}
	workspace := find("Cargo.toml", `(?s)\[workspace\.package\].*?\nversion = "([^"]+)"`, cargo)
	for name, version := range map[string]string{
		"appVersion in Chart.yaml":  find("Chart.yaml", `(?m)^appVersion: "?([^"\s]+)`, chart),
		"VERSION in the Dockerfile": find("Dockerfile", `(?m)^ARG VERSION=(\S+)`, dockerfile),
	} {
		if version != workspace {
			findings = append(findings, fmt.Sprintf("%s is %s, Cargo.toml has %s", name, version, workspace))
		}
	}
	oldest := find("Cargo.toml", `(?m)^rust-version = "1\.(\d+)`, cargo)
	rust := find("Dockerfile", `(?m)^ARG RUST_VERSION=1\.(\d+)`, dockerfile)
	if len(rust) < len(oldest) || len(rust) == len(oldest) && rust < oldest {
		findings = append(findings, fmt.Sprintf("the Dockerfile builds with Rust 1.%s, Cargo.toml needs 1.%s", rust, oldest))
	}
	return findings
}
