package zqtest

import (
	"errors"
	"testing"
)

// A port can be taken between the moment it was found free and the start. Then
// whoever answers there must not be mistaken for the server just started.
func TestTakenPortIsNoticedAndLeftAlone(t *testing.T) {
	t.Parallel()
	first := Redis(t)
	in, err := newInstance(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	in.port = first.in.port
	if err := in.launch(); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v", err)
	}
	if in.proc.alive() {
		t.Error("the second server still runs")
	}
	in.port = 0
	if err := in.start(); err != nil || in.port == first.in.port {
		t.Errorf("on another port: %v", err)
	}
	if err := in.shutDown(); err != nil {
		t.Error(err)
	}
	if err := first.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("the first server: %v", err)
	}
}
