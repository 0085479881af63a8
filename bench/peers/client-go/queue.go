package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// burst is how many a producer adds before it lets others run, as an informer's handler does with a batch of events.
const burst = 100

// queueShape is what is done with a work queue, and how much of it.
type queueShape struct {
	what                           string
	adds, keys, producers, workers int
}

// queueFigures are all for each add.
type queueFigures struct {
	CPU  float64 `json:"cpu_us"`
	Wall float64 `json:"wall_us"`
	// Handled is how often a worker got something.
	Handled float64 `json:"handled"`
}

func defineQueue(flags *flag.FlagSet) run {
	var shape queueShape
	flags.StringVar(&shape.what, "case", "", "single: an item is added, taken and done, then the next; crowd: all keys are added, then all are handled;\n"+
		"busy: many add each key twice in a row while many take; retry: an item is retried with the default limiter, and forgotten")
	flags.IntVar(&shape.adds, "adds", 1_000_000, "how often an item is added")
	flags.IntVar(&shape.keys, "keys", 100_000, "keys of pods")
	flags.IntVar(&shape.producers, "producers", 50, "how many add, in the case busy")
	flags.IntVar(&shape.workers, "workers", 10, "how many take items, then")
	return func(_ context.Context, output io.Writer) error {
		if shape.adds < 1 || shape.keys < 1 || shape.producers < 1 || shape.workers < 1 {
			return usageError("--adds, --keys, --producers and --workers must be 1 or more")
		}
		figures, err := shape.measure()
		if err != nil {
			return err
		}
		return json.NewEncoder(output).Encode(figures)
	}
}

// measure takes CPU and wall time of the adds and of all that follows from them. Keys are made before.
func (s queueShape) measure() (queueFigures, error) {
	keys := podKeys(s.keys)
	var work func() int64
	switch s.what {
	case "single":
		work = func() int64 { return s.inCrowds(keys, 1) }
	case "crowd":
		work = func() int64 { return s.inCrowds(keys, len(keys)) }
	case "busy":
		work = func() int64 { return s.busy(keys) }
	case "retry":
		work = func() int64 { return s.retry(keys) }
	default:
		return queueFigures{}, usageError("--case must be single, crowd, busy or retry")
	}
	runtime.GC()
	cpu, wall := cpuTime(), time.Now()
	handled := work()
	took, passed := cpuTime()-cpu, time.Since(wall)
	each := float64(s.adds)
	return queueFigures{micros(took) / each, micros(passed) / each, float64(handled) / each}, nil
}

// inCrowds adds so many, then handles them all, and so on. It returns how many it handled.
func (s queueShape) inCrowds(keys []string, crowd int) (handled int64) {
	queue := workqueue.NewTyped[string]()
	for added := 0; added < s.adds; {
		until := min(added+crowd, s.adds)
		for n := added; n < until; n++ {
			queue.Add(keys[n%len(keys)])
		}
		for ; added < until; added++ {
			if handle(queue) {
				handled++
			}
		}
	}
	return handled
}

// busy lets producers add each key twice in a row while workers take, until everything has been added and taken. It returns
// how many were handled.
func (s queueShape) busy(keys []string) int64 {
	queue := workqueue.NewTyped[string]()
	var handled atomic.Int64
	var producers, workers sync.WaitGroup
	for range s.workers {
		workers.Go(func() {
			var count int64
			for handle(queue) {
				count++
			}
			handled.Add(count)
		})
	}
	for producer := range s.producers {
		producers.Go(func() {
			for n := producer * s.adds / s.producers; n < (producer+1)*s.adds/s.producers; n++ {
				queue.Add(keys[n/2%len(keys)])
				if n%burst == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	producers.Wait()
	queue.ShutDown()
	workers.Wait()
	return handled.Load()
}

func (s queueShape) retry(keys []string) int64 {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	for n := range s.adds {
		key := keys[n%len(keys)]
		queue.AddRateLimited(key)
		queue.Forget(key)
	}
	takenIn(queue)
	return 0
}

// handle takes the next item and is done with it. It returns false if the queue is shut down.
func handle(queue workqueue.TypedInterface[string]) bool {
	key, ended := queue.Get()
	if !ended {
		queue.Done(key)
	}
	return !ended
}

// takenIn waits until the goroutine that minds the delays has all that was delayed before: what comes last is last.
func takenIn(queue workqueue.TypedDelayingInterface[string]) {
	const last = "last"
	queue.AddAfter(last, time.Nanosecond)
	for {
		key, ended := queue.Get()
		queue.Done(key)
		if ended || key == last {
			return
		}
	}
}

func podKeys(count int) []string {
	keys := make([]string, count)
	for n := range keys {
		keys[n] = fmt.Sprintf("namespace-%d/pod-%07d", n%20, n)
	}
	return keys
}
