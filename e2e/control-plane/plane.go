package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// plane is etcd and the API server on top of it.
type plane struct {
	dir    string
	etcd   *etcd
	server *apiServer
}

func newPlane(dir string) (*plane, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	server := &apiServer{dir: dir, port: ports[0], etcd: ports[1]}
	if err := writeFiles(dir, server.url()); err != nil {
		return nil, err
	}
	return &plane{dir: dir, etcd: &etcd{dir: dir, clients: ports[1], peers: ports[2]}, server: server}, nil
}

func (p *plane) url() string { return p.server.url() }

func (p *plane) start(cancel <-chan os.Signal) error {
	if err := p.etcd.start(); err != nil {
		return err
	}
	return p.server.start(cancel)
}

func (p *plane) stop() {
	p.server.stop()
	p.etcd.stop()
}

var words = regexp.MustCompile(`^[a-z0-9-]+$`)

// obey runs one command and returns what it answers.
func (p *plane) obey(line string) (string, error) {
	command, name, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch command {
	case "compact":
		return p.compact()
	case "stop":
		p.server.stop()
		return "", nil
	case "start":
		return "", p.server.start(nil)
	case "restart":
		p.server.stop()
		return "", p.server.start(nil)
	case "save", "restore":
		if !words.MatchString(name) {
			return "", fmt.Errorf("%s what? A name of small letters, digits and dashes is wanted, not %q", command, name)
		}
		return "", p.exchange(command, filepath.Join(p.dir, "saved-"+name))
	case "pid":
		if p.server.process == nil {
			return "", errors.New("the API server is stopped")
		}
		return strconv.Itoa(p.server.process.Process.Pid), nil
	default:
		return "", fmt.Errorf("unknown command %q: compact, stop, start, restart, save NAME, restore NAME, pid", command)
	}
}

// compact forgets every revision but the newest.
func (p *plane) compact() (string, error) {
	client := v3client.New(p.etcd.running.Server)
	defer client.Close()
	newest, err := client.Get(context.Background(), "newest")
	if err != nil {
		return "", err
	}
	revision := newest.Header.Revision
	if _, err := client.Compact(context.Background(), revision, clientv3.WithCompactPhysical()); err != nil {
		return "", err
	}
	return strconv.FormatInt(revision, 10), nil
}

// exchange copies etcd's files to a place, or from it, while nothing runs.
func (p *plane) exchange(command, saved string) error {
	if _, err := os.Stat(saved); command == "restore" && err != nil {
		return errors.New("nothing was saved under that name")
	}
	p.stop()
	from, to := p.etcd.files(), saved
	if command == "restore" {
		from, to = to, from
	}
	err := os.RemoveAll(to)
	if err == nil {
		err = os.CopyFS(to, os.DirFS(from))
	}
	return errors.Join(err, p.start(nil))
}
