package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"k8s.io/client-go/util/workqueue"
)

type delayFigures struct {
	// CPU and Bytes are for each item, its key included.
	CPU   float64 `json:"cpu_us"`
	Bytes float64 `json:"bytes"`
	// ShutDown is how long it took, Left how much more memory there is than before the first key, with the queue still there.
	ShutDown float64 `json:"shut_down_ms"`
	Left     float64 `json:"left_mb"`
}

func defineDelays(flags *flag.FlagSet) run {
	items := flags.Int("items", 1_000_000, "items that come in hours")
	return func(_ context.Context, output io.Writer) error {
		if *items < 1 {
			return usageError("--items must be 1 or more")
		}
		figures, err := delayMany(*items)
		if err != nil {
			return err
		}
		return json.NewEncoder(output).Encode(figures)
	}
}

// delayMany delays so many items, and shuts the queue down.
func delayMany(items int) (delayFigures, error) {
	empty, err := resident()
	if err != nil {
		return delayFigures{}, err
	}
	queue, keys := workqueue.NewTypedDelayingQueue[string](), podKeys(items)
	runtime.GC()
	before := cpuTime()
	for n, key := range keys {
		queue.AddAfter(key, hours(n))
	}
	takenIn(queue)
	cpu := cpuTime() - before

	keys = nil // The queue has them.
	debug.FreeOSMemory()
	full, err := resident()
	if err != nil {
		return delayFigures{}, err
	}
	begin := time.Now()
	queue.ShutDown()
	shutDown := time.Since(begin)
	time.Sleep(100 * time.Millisecond) // The goroutine that has the items ends by itself.
	debug.FreeOSMemory()
	left, err := resident()
	runtime.KeepAlive(queue)
	return delayFigures{
		CPU:      micros(cpu) / float64(items),
		Bytes:    (full - empty) / float64(items),
		ShutDown: micros(shutDown) / 1e3,
		Left:     (left - empty) / 1024 / 1024,
	}, err
}

// hours is from one to ten of them, without pattern.
func hours(n int) time.Duration {
	scattered := uint64(n) * 0x9e37_79b9_7f4a_7c15 >> 32
	return time.Hour + time.Duration(scattered*7)*time.Microsecond
}

// resident is the memory of this process in bytes.
func resident() (float64, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, pages float64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0, fmt.Errorf("/proc/self/statm: %w", err)
	}
	return pages * float64(os.Getpagesize()), nil
}
