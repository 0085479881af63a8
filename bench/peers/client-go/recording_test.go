package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// recorded is a recording of made-up pods, and those pods as they are listed.
func recorded(t *testing.T, count int) (*recording, []corev1.Pod) {
	t.Helper()
	pods, err := madeUpPods(count)
	if err != nil {
		t.Fatal(err)
	}
	recording, err := record(pods)
	if err != nil {
		t.Fatal(err)
	}
	return recording, pods
}

// decoded is what client-go reads from a watch in that format.
func decoded(t *testing.T, format *format, stream io.Reader) []watch.Event {
	t.Helper()
	frames := format.info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(stream))
	decoder := restwatch.NewDecoder(
		streaming.NewDecoder(frames, format.info.StreamSerializer.Serializer), scheme.Codecs.UniversalDeserializer())
	var events []watch.Event
	for {
		kind, object, err := decoder.Decode()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, watch.Event{Type: kind, Object: object})
	}
}

func TestAPlayedUpdateIsThePodWithAnotherVersionInBothFormats(t *testing.T) {
	recording, pods := recorded(t, 3)
	for _, format := range recording.formats {
		var stream bytes.Buffer
		const from, updates = 2, 7
		if written, err := recording.play(&stream, format, from, updates); err != nil || written != updates {
			t.Fatal(written, err)
		}
		events := decoded(t, format, &stream)
		if len(events) != updates {
			t.Fatalf("%s: %d events", format.mediaType, len(events))
		}
		for n, event := range events {
			want := pods[(from+n)%len(pods)].DeepCopy()
			setVersion(want, recording.version(from+n))
			got := event.Object.(*corev1.Pod)
			got.TypeMeta = want.TypeMeta
			if event.Type != watch.Modified || !reflect.DeepEqual(normal(t, got), normal(t, want)) {
				t.Errorf("%s, update %d: %s %v", format.mediaType, n, event.Type, got)
			}
		}
	}
}

// normal is the pod as JSON, where a time is the same whatever its place on the map.
func normal(t *testing.T, pod *corev1.Pod) (value any) {
	t.Helper()
	encoded, err := json.Marshal(pod)
	if err == nil {
		err = json.Unmarshal(encoded, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAStreamingListIsEveryPodAndABookmarkInBothFormats(t *testing.T) {
	recording, pods := recorded(t, 3)
	for _, format := range recording.formats {
		var stream bytes.Buffer
		if err := recording.writeInitial(&stream, format, true); err != nil {
			t.Fatal(err)
		}
		events := decoded(t, format, &stream)
		if len(events) != len(pods)+1 {
			t.Fatalf("%s: %d events", format.mediaType, len(events))
		}
		for n, event := range events[:len(pods)] {
			if event.Type != watch.Added || event.Object.(*corev1.Pod).Name != pods[n].Name {
				t.Errorf("%s: %v", format.mediaType, event)
			}
		}
		end := events[len(pods)].Object.(*corev1.Pod)
		if end.ResourceVersion != recording.pods.ResourceVersion || end.Annotations["k8s.io/initial-events-end"] != "true" {
			t.Errorf("%s: %v", format.mediaType, end)
		}
	}
}

func TestAMadeUpPodIsOfTheSizeOfARealOne(t *testing.T) {
	recording, _ := recorded(t, 1)
	json, protobuf := len(recording.formats[0].updates[0].bytes), len(recording.formats[1].updates[0].bytes)
	if json < 7_000 || json > 8_000 || protobuf < 4_500 || protobuf > 5_500 {
		t.Errorf("%d bytes of JSON, %d of protobuf", json, protobuf)
	}
}

func TestAPodThatLooksLikeAVersionIsRefused(t *testing.T) {
	pods, err := madeUpPods(1)
	if err != nil {
		t.Fatal(err)
	}
	pods[0].Labels["number"] = "987654321"
	if _, err := record(pods); err == nil {
		t.Error("its label would be patched")
	}
}

func TestVersionsEndBeforeTheyNeedATenthDigit(t *testing.T) {
	recording, _ := recorded(t, 1)
	left := lastVersion - recording.version(-1)
	if _, err := recording.play(io.Discard, recording.formats[0], left-2, 2); err != nil {
		t.Error(err)
	}
	if _, err := recording.play(io.Discard, recording.formats[0], left-1, 2); err == nil {
		t.Error("a version of ten digits")
	}
}

func TestTheFormatIsTheFirstThatIsAccepted(t *testing.T) {
	recording, _ := recorded(t, 1)
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "text/html, application/json": "application/json",
		"application/json;as=Table;v=v1,application/vnd.kubernetes.protobuf":       "application/json",
		"application/vnd.kubernetes.protobuf;stream=watch, application/json;q=0.9": "application/vnd.kubernetes.protobuf",
	} {
		if got := recording.format(accept).mediaType; got != want {
			t.Errorf("%q: %s", accept, got)
		}
	}
}
