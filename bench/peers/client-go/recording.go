package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

const (
	// firstVersion is the first pod's. All versions have nine digits, so one fits where another stood.
	firstVersion = 100_000_000
	lastVersion  = 999_999_999
	// batchSize is how much is written at once.
	batchSize = 256 << 10
	// messagePrefix precedes the version in status.message, the field that every update changes.
	messagePrefix = "version "
)

// recording is pods and endless updates of them, in turn. Update 0 follows the list; every update has the next version.
// Nothing moves: a client that lists again is back at the beginning.
type recording struct {
	pods    *corev1.PodList
	formats []*format
}

// format is one of the encodings that a client can ask for, with each pod's update encoded once and for all.
type format struct {
	mediaType, streamType string
	objects               runtime.Encoder
	info                  runtime.SerializerInfo
	updates               []frame
}

// frame is an encoded watch event, and where in it the version stands: in the metadata and in the changed field.
type frame struct {
	bytes  []byte
	places [2]int
}

// record gives the pods their versions and encodes their updates.
func record(pods []corev1.Pod) (*recording, error) {
	if len(pods) == 0 {
		return nil, fmt.Errorf("no pods to replay")
	}
	r := &recording{pods: &corev1.PodList{Items: pods}}
	r.pods.ResourceVersion = strconv.Itoa(r.version(-1))
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		format, err := newFormat(mediaType)
		if err != nil {
			return nil, err
		}
		for n := range pods {
			frame, err := format.update(&pods[n])
			if err != nil {
				return nil, err
			}
			format.updates = append(format.updates, frame)
			setVersion(&pods[n], firstVersion+n)
		}
		r.formats = append(r.formats, format)
	}
	return r, nil
}

// version is what update n has; the list's is that of update -1.
func (r *recording) version(n int) int { return firstVersion + len(r.pods.Items) + n }

// format is the one that an Accept header names first, JSON if it names none.
func (r *recording) format(accept string) *format {
	for wanted := range strings.SplitSeq(accept, ",") {
		wanted, _, _ = strings.Cut(wanted, ";")
		for _, format := range r.formats {
			if strings.TrimSpace(wanted) == format.mediaType {
				return format
			}
		}
	}
	return r.formats[0]
}

// writeInitial writes every pod as added and, for a streaming list, the bookmark that ends it.
func (r *recording) writeInitial(to io.Writer, format *format, streamed bool) error {
	batch := bufio.NewWriterSize(to, batchSize)
	for n := range r.pods.Items {
		if err := format.writeEvent(batch, watch.Added, &r.pods.Items[n]); err != nil {
			return err
		}
	}
	if streamed {
		end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: r.pods.ResourceVersion,
			Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}
		if err := format.writeEvent(batch, watch.Bookmark, end); err != nil {
			return err
		}
	}
	return batch.Flush()
}

// play writes that many updates from update `from` on, and returns how many it wrote.
func (r *recording) play(to io.Writer, format *format, from, updates int) (int, error) {
	if r.version(from+updates-1) > lastVersion {
		return 0, fmt.Errorf("no versions are left for %d more updates", updates)
	}
	batch := make([]byte, 0, batchSize+len(format.updates[0].bytes))
	written := 0
	for n := range updates {
		frame := &format.updates[(from+n)%len(format.updates)]
		start := len(batch)
		batch = append(batch, frame.bytes...)
		frame.setVersion(batch[start:], r.version(from+n))
		if len(batch) < batchSize && n+1 < updates {
			continue
		}
		if _, err := to.Write(batch); err != nil {
			return written, err
		}
		written, batch = n+1, batch[:0]
	}
	return written, nil
}

// setVersion writes a version of nine digits into a copy of the frame.
func (f *frame) setVersion(copied []byte, version int) {
	for _, place := range f.places {
		strconv.AppendInt(copied[place:place], int64(version), 10)
	}
}

func newFormat(mediaType string) (*format, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok || info.StreamSerializer == nil {
		return nil, fmt.Errorf("client-go cannot stream %s", mediaType)
	}
	streamType := mediaType
	if mediaType != runtime.ContentTypeJSON {
		streamType += ";stream=watch"
	}
	return &format{
		mediaType:  mediaType,
		streamType: streamType,
		objects:    scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion),
		info:       info,
	}, nil
}

// writeEvent encodes one watch event.
func (f *format) writeEvent(to io.Writer, kind watch.EventType, pod *corev1.Pod) error {
	frames := streaming.NewEncoder(f.info.StreamSerializer.Framer.NewFrameWriter(to), f.info.StreamSerializer.Serializer)
	return restwatch.NewEncoder(frames, f.objects).Encode(&watch.Event{Type: kind, Object: pod})
}

// update encodes a pod's update and finds the places of the version in it. It leaves the pod with another version.
func (f *format) update(pod *corev1.Pod) (frame, error) {
	const mark = 987_654_321
	setVersion(pod, mark)
	var encoded bytes.Buffer
	if err := f.writeEvent(&encoded, watch.Modified, pod); err != nil {
		return frame{}, err
	}
	digits := []byte(strconv.Itoa(mark))
	if found := bytes.Count(encoded.Bytes(), digits); found != 2 {
		return frame{}, fmt.Errorf("pod %s/%s has %q in it: it cannot be replayed", pod.Namespace, pod.Name, digits)
	}
	all := bytes.Clone(encoded.Bytes())
	return frame{all, [2]int{bytes.Index(all, digits), bytes.LastIndex(all, digits)}}, nil
}

func setVersion(pod *corev1.Pod, version int) {
	pod.ResourceVersion = strconv.Itoa(version)
	pod.Status.Message = messagePrefix + pod.ResourceVersion
}

//go:embed pod.json
var template []byte

// madeUpPods are pods as a real API server wrote one: ten of each replica set, in 20 namespaces on 500 nodes.
func madeUpPods(count int) ([]corev1.Pod, error) {
	// The managed fields are kept as they are written: without the spaces that make the file readable.
	var compact bytes.Buffer
	if err := json.Compact(&compact, template); err != nil {
		return nil, err
	}
	var model corev1.Pod
	if err := json.Unmarshal(compact.Bytes(), &model); err != nil {
		return nil, err
	}
	pods := make([]corev1.Pod, count)
	for n := range pods {
		pod := model.DeepCopy()
		app := fmt.Sprintf("checkout-%d", n/10)
		pod.Name = fmt.Sprintf("%s-6f7d8c9b54-%05d", app, n)
		pod.Namespace = fmt.Sprintf("namespace-%d", n%20)
		pod.GenerateName = app + "-6f7d8c9b54-"
		pod.UID = types.UID(fmt.Sprintf("3b0c9d0e-7a55-4d1c-9c3d-%012x", n))
		pod.Labels["app.kubernetes.io/name"] = app
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(
			&metav1.ObjectMeta{Name: app + "-6f7d8c9b54", UID: types.UID(fmt.Sprintf("52f0f9a1-c7e4-4d1c-9c3d-%012x", n/10))},
			appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		)}
		pod.Spec.NodeName = fmt.Sprintf("worker-%03d", n%500)
		pod.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", 64+n>>16&63, n>>8&255, n&255)
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		pods[n] = *pod
	}
	return pods, nil
}
