package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func replaying(t *testing.T, pods int) string {
	t.Helper()
	recording, _ := recorded(t, pods)
	server := httptest.NewServer(newReplay(recording).handler())
	t.Cleanup(server.Close)
	return server.URL
}

// letGo asks for updates and returns the answer.
func letGo(url, events string) string {
	response, err := http.Post(url+"/go?events="+events, "", nil)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return response.Status + " " + strings.TrimSpace(string(body))
}

func TestTheWatchPeerSeesEveryReplayedUpdateInBothFormats(t *testing.T) {
	for _, format := range []string{"--json=false", "--json"} {
		url := replaying(t, 5)
		input, end := io.Pipe()
		printed, output := io.Pipe()
		code := make(chan int)
		go func() {
			code <- execute([]string{"watch", "--server", url, "--events", "12", format}, input, output, io.Discard)
		}()
		lines := bufio.NewScanner(printed)
		expect := func(want string) {
			t.Helper()
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("%q instead of %q", lines.Text(), want)
			}
		}
		expect("synced 5")
		if answer := letGo(url, "12"); answer != `200 OK {"events":12,"watches":1}` {
			t.Fatal(answer)
		}
		expect("done 12")
		expect("settled")
		_ = end.Close()
		if code := <-code; code != 0 {
			t.Fatal(code)
		}
	}
}

func TestAWatchGoesOnWhereItsVersionWas(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: replaying(t, 3)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 || list.ResourceVersion != "100000002" {
		t.Fatal(list, err)
	}
	updates, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: "100000006"})
	if err != nil {
		t.Fatal(err)
	}
	defer updates.Stop()
	host := client.CoreV1().RESTClient().Get().URL()
	letGo("http://"+host.Host, "2")
	for _, want := range []struct{ version, name string }{
		{"100000007", list.Items[1].Name}, {"100000008", list.Items[2].Name},
	} {
		event := <-updates.ResultChan()
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type != watch.Modified || pod.ResourceVersion != want.version || pod.Name != want.name {
			t.Errorf("%v instead of %v", event, want)
		}
	}
	for version, refused := range map[string]func(error) bool{
		"7": errors.IsResourceExpired, "x": errors.IsBadRequest, "9223372036854775807": errors.IsBadRequest,
	} {
		if _, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: version}); !refused(err) {
			t.Error(version, err)
		}
	}
}

func TestGoWaitsForTheFirstWatch(t *testing.T) {
	url := replaying(t, 3)
	answer := make(chan string)
	go func() { answer <- letGo(url, "4") }()
	response, err := http.Get(url + "/api/v1/pods?watch=true&resourceVersion=100000002")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewReader(response.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil || strings.Contains(line, `"resourceVersion":"100000006"`) {
			break
		}
	}
	if answer := <-answer; answer != `200 OK {"events":4,"watches":1}` {
		t.Error(answer)
	}
}

func TestGoWithoutEventsIsRefused(t *testing.T) {
	for _, events := range []string{"", "0", "-1", "x", "999999999999"} {
		if answer := letGo(replaying(t, 1), events); !strings.HasPrefix(answer, "400 ") {
			t.Errorf("%q: %s", events, answer)
		}
	}
}

func TestDiscoveryNamesPods(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: replaying(t, 1)})
	if err != nil {
		t.Fatal(err)
	}
	groups, resources, err := client.Discovery().ServerGroupsAndResources()
	if err != nil || len(groups) != 1 || len(resources) != 1 || resources[0].APIResources[0].Name != "pods" {
		t.Error(groups, resources, err)
	}
}
