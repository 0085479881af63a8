package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// firstWatch is how long /go waits for a watch when none is open: a client that lists first opens it after its sync.
const firstWatch = 10 * time.Second

func defineReplay(flags *flag.FlagSet) run {
	count := flags.Int("pods", 2_000, "how many pods")
	kubeconfig := flags.String("kubeconfig", "", "take them from the cluster that this `file` names; else they are made up")
	return func(ctx context.Context, output io.Writer) error {
		if *count < 1 {
			return usageError("--pods must be 1 or more")
		}
		pods, err := podsToReplay(ctx, *count, *kubeconfig)
		if err != nil {
			return err
		}
		recording, err := record(pods)
		if err != nil {
			return err
		}
		debug.FreeOSMemory() // Encoding leaves as much garbage as it makes frames.
		return serve(ctx, newReplay(recording).handler(), output)
	}
}

func podsToReplay(ctx context.Context, count int, kubeconfig string) ([]corev1.Pod, error) {
	if kubeconfig == "" {
		return madeUpPods(count)
	}
	config, err := clusterOf(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := connect(config, false)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: int64(count)})
	if err != nil {
		return nil, err
	}
	if len(list.Items) < count {
		return nil, fmt.Errorf("the cluster has %d pods instead of %d", len(list.Items), count)
	}
	return list.Items, nil
}

// serve answers on a free port of loopback until the input ends. It prints its URL.
func serve(ctx context.Context, handler http.Handler, output io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	defer server.Close()
	ctx, fail := context.WithCancelCause(ctx)
	go func() { fail(server.Serve(listener)) }()
	fmt.Fprintf(output, "http://%s\n", listener.Addr())
	return stay(ctx)
}

// replay is an API server with pods only, whose watches tell what /go lets them.
type replay struct {
	recording *recording
	lock      sync.Mutex
	watches   map[*openWatch]struct{}
	// opened is closed when a watch opens, and replaced.
	opened chan struct{}
}

// openWatch takes orders until it is gone.
type openWatch struct {
	orders chan order
	gone   chan struct{}
}

// order lets a watch tell that many updates. One that is taken is answered: with how many were written.
type order struct {
	updates int
	written chan int
}

func newReplay(recording *recording) *replay {
	return &replay{recording: recording, watches: map[*openWatch]struct{}{}, opened: make(chan struct{})}
}

func (r *replay) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/pods", r.pods)
	mux.HandleFunc("POST /go", r.letGo)
	for path, answer := range map[string]any{
		"/version": version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1"},
		"/api":     metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{},
		},
		"/api/v1": metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: "v1",
			APIResources: []metav1.APIResource{{
				Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"list", "watch"},
			}},
		},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, answer) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, request *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "nothing is replayed at "+request.URL.Path)
	})
	return mux
}

func (r *replay) pods(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	format := r.recording.format(request.Header.Get("Accept"))
	if watching, _ := strconv.ParseBool(query.Get("watch")); !watching {
		w.Header().Set("Content-Type", format.mediaType)
		_ = format.objects.Encode(r.recording.pods, w) // Whoever has hung up needs no answer.
		return
	}

	since, streamed := query.Get("resourceVersion"), query.Get("sendInitialEvents") == "true"
	next := 0
	initial := streamed || since == "" || since == "0"
	if !initial {
		version, err := strconv.Atoi(since)
		if err != nil || version > lastVersion {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "no such resource version: "+since)
			return
		}
		if next = version - r.recording.version(-1); next < 0 {
			refuse(w, http.StatusGone, metav1.StatusReasonExpired, "too old resource version: "+since)
			return
		}
	}

	w.Header().Set("Content-Type", format.streamType)
	stream := flushed{w, http.NewResponseController(w)}
	if err := stream.controller.Flush(); err != nil {
		return
	}
	if initial {
		if err := r.recording.writeInitial(stream, format, streamed); err != nil {
			return
		}
	}

	watch := r.open()
	defer r.close(watch)
	for {
		select {
		case <-request.Context().Done():
			return
		case order := <-watch.orders:
			written, err := r.recording.play(stream, format, next, order.updates)
			order.written <- written
			if err != nil {
				return
			}
			next += written
		}
	}
}

// letGo lets every open watch tell updates, and answers when all are written: how many watches there were, and how many
// updates they wrote together.
func (r *replay) letGo(w http.ResponseWriter, request *http.Request) {
	updates, err := strconv.Atoi(request.URL.Query().Get("events"))
	if err != nil || updates < 1 || updates > lastVersion-firstVersion {
		http.Error(w, "events=N is needed, 1 or more", http.StatusBadRequest)
		return
	}
	watches := r.openWatches(request.Context())
	if len(watches) == 0 {
		http.Error(w, "no watch is open", http.StatusConflict)
		return
	}
	var all sync.WaitGroup
	var written atomic.Int64
	for _, watch := range watches {
		all.Go(func() {
			order := order{updates, make(chan int, 1)}
			select {
			case watch.orders <- order:
				written.Add(int64(<-order.written))
			case <-watch.gone:
			}
		})
	}
	all.Wait()
	answerJSON(w, http.StatusOK, map[string]int64{"watches": int64(len(watches)), "events": written.Load()})
}

// openWatches are the watches that are open now or, if there are none, as soon as there is one.
func (r *replay) openWatches(ctx context.Context) []*openWatch {
	deadline := time.After(firstWatch)
	for {
		r.lock.Lock()
		watches, opened := slices.Collect(maps.Keys(r.watches)), r.opened
		r.lock.Unlock()
		if len(watches) > 0 {
			return watches
		}
		select {
		case <-opened:
		case <-deadline:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *replay) open() *openWatch {
	watch := &openWatch{orders: make(chan order), gone: make(chan struct{})}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.watches[watch] = struct{}{}
	close(r.opened)
	r.opened = make(chan struct{})
	return watch
}

func (r *replay) close(watch *openWatch) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.watches, watch)
	close(watch.gone)
}

// flushed is a stream that keeps nothing back.
type flushed struct {
	http.ResponseWriter
	controller *http.ResponseController
}

func (f flushed) Write(bytes []byte) (int, error) {
	written, err := f.ResponseWriter.Write(bytes)
	if err != nil {
		return written, err
	}
	return written, f.controller.Flush()
}

func answerJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // Whoever has hung up needs no answer.
}

// refuse answers an error as an API server does.
func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	answerJSON(w, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	})
}
