package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// etcd is the store, in this process.
type etcd struct {
	dir            string
	clients, peers int
	running        *embed.Etcd
}

func (e *etcd) files() string { return filepath.Join(e.dir, "etcd") }

func (e *etcd) start() error {
	address := func(port int) []url.URL {
		return []url.URL{{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}}
	}
	config := embed.NewConfig()
	config.Dir = e.files()
	config.ListenClientUrls, config.AdvertiseClientUrls = address(e.clients), address(e.clients)
	config.ListenPeerUrls, config.AdvertisePeerUrls = address(e.peers), address(e.peers)
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.LogLevel = "error"
	config.LogOutputs = []string{filepath.Join(e.dir, "etcd.log")}
	// It need not outlive this machine.
	config.UnsafeNoFsync = true
	config.QuotaBackendBytes = 8 << 30

	running, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	e.running = running
	select {
	case <-running.Server.ReadyNotify():
		return nil
	case err := <-running.Err():
		return fmt.Errorf("etcd: %w", err)
	case <-time.After(time.Minute):
		return fmt.Errorf("etcd is not ready after a minute, see %s", config.LogOutputs[0])
	}
}

func (e *etcd) stop() {
	if e.running != nil {
		e.running.Close()
		e.running = nil
	}
}
