package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestFanOutEndsWhenEveryHandlerHasSeenEveryUpdate(t *testing.T) {
	for _, handlers := range []int{1, 7} {
		figures, err := fanout{handlers: handlers, objects: 40, updates: 1_000}.measure(t.Context())
		if err != nil || figures.CPU <= 0 || figures.Wall <= 0 {
			t.Errorf("%d handlers: %+v %v", handlers, figures, err)
		}
	}
}

func TestEveryItemComesThroughAQueueUnlessItIsMerged(t *testing.T) {
	for what, handled := range map[string][2]float64{"single": {1, 1}, "crowd": {1, 1}, "busy": {0.001, 1}, "retry": {0, 0}} {
		shape := queueShape{what: what, adds: 2_000, keys: 100, producers: 5, workers: 3}
		figures, err := shape.measure()
		if err != nil || figures.Wall <= 0 || figures.Handled < handled[0] || figures.Handled > handled[1] {
			t.Errorf("%s: %+v %v", what, figures, err)
		}
	}
}

func TestItemsThatComeInHoursTakeMemoryUntilTheEnd(t *testing.T) {
	figures, err := delayMany(50_000)
	if err != nil || figures.CPU <= 0 || figures.Bytes <= 0 || figures.ShutDown <= 0 || figures.Left*1024*1024 >= figures.Bytes*50_000 {
		t.Errorf("%+v %v", figures, err)
	}
	for _, n := range []int{0, 1, 1_000_000} {
		if delay := hours(n); delay < time.Hour || delay > 10*time.Hour {
			t.Errorf("%d: %v", n, delay)
		}
	}
}

// A list that finds more or fewer is an error.
func TestAsManyPodsMatchAsWereAskedFor(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {100, 100}, {137, 10}, {1_000, 100}, {999, 1}} {
		figures, err := listByLabel(shape[0], shape[1], 0)
		if err != nil || figures.Best <= 0 || figures.Median < figures.Best {
			t.Errorf("%v: %+v %v", shape, figures, err)
		}
	}
}

func TestWritesAreCountedAloneAndBesideReaders(t *testing.T) {
	figures, err := writeUnderReads(100, 2, 20*time.Millisecond)
	if err != nil || figures.Alone <= 0 || figures.WithReaders <= 0 || figures.Lists <= 0 {
		t.Errorf("%+v %v", figures, err)
	}
}

func TestArgumentsThatAreWrongTeachAndHelpIsNoError(t *testing.T) {
	for arguments, expected := range map[string]int{
		"": 2, "unknown": 2, "--help": 0, "sync --help": 0, "fanout --help": 0,
		"sync": 2, "sync --unknown": 2, "sync argument": 2, "watch --server http://127.0.0.1": 2, "replay --pods 0": 2,
		"labels --objects 5 --matches 6": 2, "reads --seconds NaN": 2, "fanout --handlers 0": 2,
		"queue": 2, "queue --case unknown": 2, "queue --case busy --workers 0": 2, "delays --items 0": 2,
		"sync --kubeconfig /nonexistent": 1, "gateway --kubeconfig /nonexistent": 1,
	} {
		var said bytes.Buffer
		code := execute(strings.Fields(arguments), strings.NewReader(""), &said, &said)
		if code != expected || said.Len() == 0 {
			t.Errorf("%q: %d %s", arguments, code, said.String())
		}
		if taught := strings.Contains(said.String(), "client-go-peer "); taught != (code != 1) {
			t.Errorf("%q: %s", arguments, said.String())
		}
	}
}

func TestAFigureIsOneLineOfJSON(t *testing.T) {
	var printed bytes.Buffer
	code := execute([]string{"labels", "--objects", "200"}, strings.NewReader(""), &printed, io.Discard)
	if code != 0 || !strings.HasPrefix(printed.String(), `{"best_us":`) || strings.Count(printed.String(), "\n") != 1 {
		t.Errorf("%d %s", code, printed.String())
	}
}
