package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kuberuntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// fanout is a shared informer whose source has everything ready: nothing is decoded.
type fanout struct {
	handlers, objects, updates int
}

type fanoutFigures struct {
	CPU  float64 `json:"cpu_us_per_event"`
	Wall float64 `json:"wall_s"`
}

func defineFanout(flags *flag.FlagSet) run {
	var shape fanout
	flags.IntVar(&shape.handlers, "handlers", 1, "handlers that count")
	flags.IntVar(&shape.objects, "objects", 10_000, "config maps in 20 namespaces")
	flags.IntVar(&shape.updates, "updates", 100_000, "updates of them")
	return func(ctx context.Context, output io.Writer) error {
		if shape.handlers < 1 || shape.objects < 1 || shape.updates < 1 {
			return usageError("--handlers, --objects and --updates must be 1 or more")
		}
		figures, err := shape.measure(ctx)
		if err != nil {
			return err
		}
		return json.NewEncoder(output).Encode(figures)
	}
}

// measure takes CPU and wall time from the first update until every handler has seen the last. The updates wait in a
// channel that holds them all, so handing them over costs the source next to nothing.
func (f fanout) measure(ctx context.Context) (fanoutFigures, error) {
	ctx, stop := context.WithCancel(ctx)
	updates := make([]watch.Event, f.updates)
	for n := range updates {
		updates[n] = watch.Event{Type: watch.Modified, Object: configMap(n*7_919%f.objects, f.objects+n+1)}
	}
	events := make(chan watch.Event, f.updates)
	informer := cache.NewSharedIndexInformer(f.source(events), &corev1.ConfigMap{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})

	var last, running sync.WaitGroup
	synced := []cache.DoneChecker{informer.HasSyncedChecker()}
	for range f.handlers {
		last.Add(1)
		var seen atomic.Int64
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(any, any) {
				if seen.Add(1) == int64(f.updates) {
					last.Done()
				}
			},
		})
		if err != nil {
			stop()
			return fanoutFigures{}, err
		}
		synced = append(synced, handler.HasSyncedChecker())
	}
	running.Go(func() { informer.RunWithContext(ctx) })
	defer running.Wait()
	defer stop()
	if !cache.WaitFor(ctx, "", synced...) {
		return fanoutFigures{}, context.Cause(ctx)
	}

	runtime.GC()
	cpu, wall := cpuTime(), time.Now()
	for _, update := range updates {
		events <- update
	}
	last.Wait()
	took := cpuTime() - cpu
	return fanoutFigures{
		CPU:  float64(took.Nanoseconds()) / 1e3 / float64(f.updates),
		Wall: time.Since(wall).Seconds(),
	}, nil
}

// source lists the objects and watches the events. It is listed, not streamed.
func (f fanout) source(events chan watch.Event) cache.ListerWatcher {
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.objects)}}
	for n := range f.objects {
		list.Items = append(list.Items, *configMap(n, n+1))
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (kuberuntime.Object, error) { return list, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewProxyWatcher(events), nil
		},
	}, listOnly{})
}

// listOnly is a client that cannot stream lists.
type listOnly struct{}

// IsWatchListSemanticsUnSupported is how a client tells the reflector.
func (listOnly) IsWatchListSemanticsUnSupported() bool { return true }

func configMap(number, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            fmt.Sprintf("object-%05d", number),
		Namespace:       fmt.Sprintf("namespace-%d", number%20),
		ResourceVersion: strconv.Itoa(version),
		Labels:          map[string]string{"app": fmt.Sprintf("app-%d", number%100)},
	}}
}

// cpuTime is the user and system time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // It fails for wrong arguments only.
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
