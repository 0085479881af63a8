package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

type labelFigures struct {
	Best   float64 `json:"best_us"`
	Median float64 `json:"median_us"`
}

func defineLabels(flags *flag.FlagSet) run {
	objects := flags.Int("objects", 100_000, "pods in the store")
	matches := flags.Int("matches", 100, "how many of them match")
	return func(_ context.Context, output io.Writer) error {
		if *matches < 1 || *objects < *matches {
			return usageError("--matches must be 1 or more, --objects not less than that")
		}
		figures, err := listByLabel(*objects, *matches, 500*time.Millisecond)
		if err != nil {
			return err
		}
		return json.NewEncoder(output).Encode(figures)
	}
}

// listByLabel lists the matches among the objects at least 50 times, for at least that long.
func listByLabel(objects, matches int, atLeast time.Duration) (labelFigures, error) {
	store := newStore()
	for n := range objects {
		// The matches are spread evenly: one wherever the share of them reaches the next whole number.
		app := "other-" + strconv.Itoa(n%100)
		if (n+1)*matches/objects > n*matches/objects {
			app = "wanted"
		}
		if err := store.Add(smallPod(n, 1, app)); err != nil {
			return labelFigures{}, err
		}
	}
	lister := listers.NewPodLister(store)
	selector := labels.SelectorFromSet(labels.Set{"app": "wanted"})

	var times []time.Duration
	for begin := time.Now(); len(times) < 50 || time.Since(begin) < atLeast; {
		start := time.Now()
		found, err := lister.List(selector)
		times = append(times, time.Since(start))
		if err != nil {
			return labelFigures{}, err
		}
		if len(found) != matches {
			return labelFigures{}, fmt.Errorf("%d pods match instead of %d", len(found), matches)
		}
	}
	slices.Sort(times)
	return labelFigures{micros(times[0]), micros(times[len(times)/2])}, nil
}

type readFigures struct {
	Alone       float64 `json:"writes_per_s_alone"`
	WithReaders float64 `json:"writes_per_s_with_readers"`
	Lists       float64 `json:"lists_per_s"`
}

func defineReads(flags *flag.FlagSet) run {
	objects := flags.Int("objects", 100_000, "pods in the store")
	readers := flags.Int("readers", 1, "readers that list everything without pause")
	seconds := flags.Float64("seconds", 3, "how long to write, alone and again with readers")
	return func(_ context.Context, output io.Writer) error {
		if *objects < 1 || *readers < 1 || !(*seconds > 0 && *seconds <= 3600) {
			return usageError("--objects and --readers must be 1 or more, --seconds more than 0 and at most 3600")
		}
		figures, err := writeUnderReads(*objects, *readers, time.Duration(*seconds*float64(time.Second)))
		if err != nil {
			return err
		}
		return json.NewEncoder(output).Encode(figures)
	}
}

// writeUnderReads writes for that long without readers, then for that long with them.
func writeUnderReads(objects, readers int, long time.Duration) (readFigures, error) {
	store := newStore()
	// Two states of every pod, made beforehand: a write is nothing but the write.
	var states [2][]*corev1.Pod
	for state := range states {
		for n := range objects {
			states[state] = append(states[state], smallPod(n, state+1, "app-"+strconv.Itoa(n%100)))
		}
	}
	for _, pod := range states[0] {
		if err := store.Add(pod); err != nil {
			return readFigures{}, err
		}
	}
	alone, err := writeFor(long, store, states)
	if err != nil {
		return readFigures{}, err
	}

	var lists atomic.Int64
	var stop atomic.Bool
	var reading sync.WaitGroup
	start := time.Now()
	for range readers {
		reading.Go(func() {
			for !stop.Load() {
				if len(store.List()) == objects {
					lists.Add(1)
				}
			}
		})
	}
	beside, err := writeFor(long, store, states)
	stop.Store(true)
	reading.Wait()
	return readFigures{alone, beside, float64(lists.Load()) / time.Since(start).Seconds()}, err
}

// writeFor updates pods in places without pattern for that long, and returns how many it wrote per second.
func writeFor(long time.Duration, store cache.Indexer, states [2][]*corev1.Pod) (float64, error) {
	objects := len(states[0])
	begin := time.Now()
	for n := 0; ; n++ {
		// The clock is asked now and then only: asking costs about a tenth of a write.
		if n%64 == 0 {
			if took := time.Since(begin); took >= long {
				return float64(n) / took.Seconds(), nil
			}
		}
		if err := store.Update(states[(n/objects+1)%2][n*7_919%objects]); err != nil {
			return 0, err
		}
	}
}

// newStore is the store that a shared informer of a factory has.
func newStore() cache.Indexer {
	return cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

func smallPod(number, version int, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            fmt.Sprintf("pod-%07d", number),
			Namespace:       fmt.Sprintf("namespace-%d", number%20),
			ResourceVersion: strconv.Itoa(version),
			Labels: map[string]string{
				"app":               app,
				"tier":              "tier-" + strconv.Itoa(number%4),
				"pod-template-hash": strconv.Itoa(number / 10),
			},
		},
		Spec: corev1.PodSpec{NodeName: fmt.Sprintf("worker-%03d", number%500)},
	}
}

func micros(took time.Duration) float64 { return float64(took.Nanoseconds()) / 1e3 }
