package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// apiServerCommand makes this program the API server alone.
const apiServerCommand = "kube-apiserver"

// serveAPI is kube-apiserver, with its own flags.
func serveAPI(flags []string) int {
	command := app.NewAPIServerCommand()
	command.SetArgs(flags)
	return cli.Run(command)
}

// apiServer is kube-apiserver in a process of its own.
type apiServer struct {
	dir        string
	port, etcd int
	process    *exec.Cmd
	ended      chan struct{}
}

func (s *apiServer) url() string { return fmt.Sprintf("https://127.0.0.1:%d", s.port) }

func (s *apiServer) file(name string) string { return filepath.Join(s.dir, name) }

// start runs the API server and returns when it is ready, or when something comes from cancel.
func (s *apiServer) start(cancel <-chan os.Signal) error {
	if s.process != nil {
		return errors.New("the API server runs already")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.file("apiserver.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	process := exec.Command(program, apiServerCommand,
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", s.etcd),
		fmt.Sprintf("--secure-port=%d", s.port),
		"--bind-address=127.0.0.1",
		"--cert-dir="+s.dir,
		"--tls-cert-file="+s.file(serverCertificate),
		"--tls-private-key-file="+s.file(serverKey),
		"--service-account-key-file="+s.file(accountKey),
		"--service-account-signing-key-file="+s.file(accountKey),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--token-auth-file="+s.file(tokens),
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		// There is nobody to make the accounts and their secrets.
		"--disable-admission-plugins=ServiceAccount",
		// etcd is compacted when it is told to, and only then.
		"--etcd-compaction-interval=0",
	)
	process.Stdout, process.Stderr = log, log
	// Ctrl-C is for this process, which then ends the other. Whatever ends this one ends both.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		return err
	}
	s.process, s.ended = process, make(chan struct{})
	go func(ended chan<- struct{}) {
		_ = process.Wait()
		close(ended)
	}(s.ended)
	return s.ready(cancel)
}

func (s *apiServer) ready(cancel <-chan os.Signal) error {
	client := http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	tooLate := time.After(3 * time.Minute)
	for {
		if answer, err := client.Get(s.url() + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.ended:
			return fmt.Errorf("kube-apiserver ended: %s\n%s", s.process.ProcessState, s.lastWords())
		case <-cancel:
			return errors.New("interrupted")
		case <-tooLate:
			return fmt.Errorf("kube-apiserver is not ready after three minutes\n%s", s.lastWords())
		}
	}
}

// lastWords is the end of its log.
func (s *apiServer) lastWords() string {
	log, _ := os.ReadFile(s.file("apiserver.log"))
	return string(log[max(0, len(log)-2000):])
}

// stop ends the API server, by force if it takes long.
func (s *apiServer) stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(5 * time.Second):
		_ = s.process.Process.Kill()
		<-s.ended
	}
	s.process = nil
}
