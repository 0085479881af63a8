// Check holds the chart, the plain manifests and the Dockerfile to their rules; deploy/test runs it. What it finds is
// printed, one line each, and the exit code is then 1.
//
//	check rules VALUES RENDERING         what was rendered from these values keeps the rules
//	check readable RENDERING <RESOURCES  its roles let the gateway watch each resource, one name per line
//	check flags RENDERING <HELP          the help of `informer serve` has every flag of it
//	check args RENDERING                 prints the arguments of its container, one per line
//	check dockerfile FILE                the Dockerfile
//	check versions ROOT                  workspace, chart and image have one version
//	check context ROOT IGNORE INTO       copies what `docker build` would see of ROOT
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	findings, err := run(os.Args[1:], os.Stdin, os.Stdout)
	if err != nil {
		findings = append(findings, err.Error())
	}
	for _, finding := range findings {
		fmt.Println("  " + finding)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: check rules|readable|flags|args|dockerfile|versions|context ARGUMENTS, see main.go")

func run(args []string, input io.Reader, output io.Writer) ([]string, error) {
	if len(args) < 2 {
		return nil, errUsage
	}
	command, args := args[0], args[1:]
	switch {
	case command == "rules" && len(args) == 2:
		asked, err := readAsked(args[0])
		if err != nil {
			return nil, err
		}
		rendering, err := readRendering(args[1])
		if err != nil {
			return nil, err
		}
		return append(checkAccess(rendering, asked), checkWorkload(rendering, asked)...), nil
	case command == "readable" && len(args) == 1:
		rendering, resources, err := readBoth(args[0], input)
		if err != nil {
			return nil, err
		}
		return prefixed("cannot be read: ", unreadable(rendering, strings.Fields(resources))), nil
	case command == "flags" && len(args) == 1:
		rendering, help, err := readBoth(args[0], input)
		if err != nil {
			return nil, err
		}
		return prefixed("not a flag of `informer serve`: ", unknownFlags(rendering, help)), nil
	case command == "args" && len(args) == 1:
		rendering, err := readRendering(args[0])
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintln(output, strings.Join(rendering.args(), "\n"))
		return nil, err
	case command == "dockerfile" && len(args) == 1:
		text, err := os.ReadFile(args[0])
		if err != nil {
			return nil, err
		}
		return checkDockerfile(text)
	case command == "versions" && len(args) == 1:
		return readVersions(args[0])
	case command == "context" && len(args) == 3:
		files, err := copyContext(args[0], args[1], args[2])
		if err == nil && files == 0 {
			err = errors.New("the build would see no files")
		}
		return nil, err
	}
	return nil, errUsage
}

func readBoth(path string, input io.Reader) (*Rendering, string, error) {
	rendering, err := readRendering(path)
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(input)
	if err == nil && len(text) == 0 {
		err = errors.New("nothing came in to compare with")
	}
	return rendering, string(text), err
}

func readVersions(root string) ([]string, error) {
	var texts []string
	for _, path := range []string{"Cargo.toml", "deploy/chart/informer/Chart.yaml", "deploy/Dockerfile"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return checkVersions(texts[0], texts[1], texts[2]), nil
}

func prefixed(prefix string, lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, prefix+line)
	}
	return all
}
