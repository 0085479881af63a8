// Command control-plane runs a real Kubernetes control plane on loopback: etcd in this process, kube-apiserver in a
// process of its own (this program again), so that it can be stopped, started and measured alone.
//
//	control-plane DIR
//
// DIR must not exist; everything is written there, and it is removed at the end. DIR/kubeconfig has the contexts "admin"
// (may do everything) and "powerless" (may do nothing). When the server answers, "ready" is printed. Then each line of
// the input is a command, answered by one line, "ok …" or "error: …":
//
//	compact        forget what etcd keeps of the past; answers the revision
//	stop, start    the API server alone; it keeps its address
//	restart        stop and start
//	save NAME      keep a copy of what etcd holds (both are down meanwhile)
//	restore NAME   go back to it
//	pid            the API server's process
//
// It ends at the end of its input, at Ctrl-C and at SIGTERM.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == apiServerCommand {
		os.Exit(serveAPI(os.Args[2:]))
	}
	if len(os.Args) != 2 || strings.HasPrefix(os.Args[1], "-") {
		fmt.Fprintln(os.Stderr, "usage: control-plane DIR   (a directory that does not exist yet)")
		os.Exit(2)
	}
	// The API server is told to die with the thread that started it, which must be one that stays.
	runtime.LockOSThread()
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(dir string) (err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if removed := os.RemoveAll(dir); err == nil {
			err = removed
		}
	}()
	plane, err := newPlane(dir)
	if err != nil {
		return err
	}
	defer plane.stop()
	if err := plane.start(signals); err != nil {
		return err
	}
	fmt.Printf("%s\nready\n", plane.url())

	for line := range commands(signals) {
		if answer, err := plane.obey(line); err != nil {
			fmt.Println("error:", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println(strings.TrimSpace("ok " + answer))
		}
	}
	return nil
}

// commands yields the lines of the input until it ends or a signal comes.
func commands(signals <-chan os.Signal) func(yield func(string) bool) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			lines <- input.Text()
		}
	}()
	return func(yield func(string) bool) {
		for {
			select {
			case line, open := <-lines:
				if !open || !yield(line) {
					return
				}
			case <-signals:
				return
			}
		}
	}
}
