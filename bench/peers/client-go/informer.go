package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

func defineSync(flags *flag.FlagSet) run {
	kubeconfig := flags.String("kubeconfig", "", "`file` that names the cluster (its current context)")
	drop := flags.Bool("drop-managed-fields", false, "drop metadata.managedFields with a transform")
	json := flags.Bool("json", false, "ask for JSON instead of what client-go asks for by itself")
	return func(ctx context.Context, output io.Writer) error {
		config, err := clusterOf(*kubeconfig)
		if err != nil {
			return err
		}
		var options []informers.SharedInformerOption
		if *drop {
			options = append(options, informers.WithTransform(dropManagedFields))
		}
		ctx, _, err = syncPods(ctx, config, *json, 0, output, options...)
		if err != nil {
			return err
		}
		settle(output)
		return stay(ctx)
	}
}

func defineWatch(flags *flag.FlagSet) run {
	server := flags.String("server", "", "`URL` of the replay server")
	events := flags.Int64("events", 0, "updates to wait for")
	json := flags.Bool("json", false, "ask for JSON instead of what client-go asks for by itself")
	return func(ctx context.Context, output io.Writer) error {
		if *server == "" || *events < 1 {
			return usageError("--server and --events (1 or more) are needed")
		}
		ctx, pods, err := syncPods(ctx, &rest.Config{Host: *server}, *json, *events, output)
		if err != nil {
			return err
		}
		select {
		case <-pods.enough:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		fmt.Fprintln(output, "done", *events)
		settle(output)
		return stay(ctx)
	}
}

// syncPods runs a pod informer over all namespaces until it and its handler have synced, and says so. The context that
// it returns ends with the reason as soon as the informer meets an error: a figure that hides a retry would be wrong.
func syncPods(
	ctx context.Context, config *rest.Config, json bool, awaited int64, output io.Writer,
	options ...informers.SharedInformerOption,
) (context.Context, *podCount, error) {
	sayContent(config, os.Stderr)
	client, err := connect(config, json)
	if err != nil {
		return nil, nil, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	pods, err := startPods(ctx, fail, client, awaited, options...)
	if err != nil {
		return nil, nil, err
	}
	if !cache.WaitFor(ctx, "", pods.synced...) {
		return nil, nil, context.Cause(ctx)
	}
	fmt.Fprintln(output, "synced", pods.added.Load())
	return ctx, pods, nil
}

// podCount is what a handler has seen of pods. enough is closed when it has seen the updates that were awaited.
type podCount struct {
	added, updated atomic.Int64
	enough         chan struct{}
	synced         []cache.DoneChecker
}

func startPods(
	ctx context.Context, fail context.CancelCauseFunc, client kubernetes.Interface, awaited int64,
	options ...informers.SharedInformerOption,
) (*podCount, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, options...)
	informer := factory.Core().V1().Pods().Informer()
	if err := failOnError(informer, fail); err != nil {
		return nil, err
	}
	pods := &podCount{enough: make(chan struct{})}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { pods.added.Add(1) },
		UpdateFunc: func(any, any) {
			if pods.updated.Add(1) == awaited {
				close(pods.enough)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	pods.synced = []cache.DoneChecker{informer.HasSyncedChecker(), handler.HasSyncedChecker()}
	factory.StartWithContext(ctx)
	return pods, nil
}

// failOnError makes an informer give up where it would try again.
func failOnError(informer cache.SharedInformer, fail context.CancelCauseFunc) error {
	return informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { fail(err) })
}

// dropManagedFields is a transform that keeps everything else.
func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// settle gives back the memory that nothing needs any more, so that garbage does not count.
func settle(output io.Writer) {
	debug.FreeOSMemory()
	fmt.Fprintln(output, "settled")
}
