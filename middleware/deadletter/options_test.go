package deadletter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zqueue/zqueue/middleware/deadletter"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// Every fault is named, all at once.
func TestOptionFaults(t *testing.T) {
	t.Parallel()
	p, err := zq.NewProducer(newTrial(t).rdb, "graves")
	if err != nil {
		t.Fatal(err)
	}
	to := deadletter.ToQueue(p, "graves")
	middleware := map[string][]deadletter.Option{
		"ToQueue producer": {deadletter.RouteRest(deadletter.ToQueue(nil, "graves"))},
		"ToQueue name":     {deadletter.RouteRest(deadletter.ToQueue(p, "grave yard"))},
		"producer's queue": {deadletter.Route("x", deadletter.ToQueue(p, "others"))},
		"each reason once": {deadletter.Route("x", to), deadletter.Route("x", to)},
		`reason is ""`:     {deadletter.Route("", to)},
		"without control":  {deadletter.Route("a\nb", to)},
		"1 to 64 bytes":    {deadletter.Route(strings.Repeat("x", 65), to)},
		"SendTimeout is":   {deadletter.SendTimeout(0)},
		"SendTimeout":      {deadletter.SendTimeout(deadletter.MaxSendTimeout + 1)},
		"Pause is -1ns":    {deadletter.Pause(-1)},
		"Pause is 1ns":     {deadletter.Pause(1)},
		"Pause is 999µs":   {deadletter.Pause(999 * time.Microsecond)},
		"Pause":            {deadletter.Pause(deadletter.MaxPause + 1)},
	}
	var every []deadletter.Option
	for want, opts := range middleware {
		every = append(every, opts...)
		if _, err := deadletter.New(opts...); !errors.Is(err, zq.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a fault of %q, got %v", want, err)
		}
	}
	_, err = deadletter.New(every...)
	for want := range middleware {
		if err == nil || !strings.Contains(err.Error(), want) && want != "SendTimeout is" && !strings.HasPrefix(want, "Pause is") {
			t.Errorf("all at once: want a fault of %q, got %v", want, err)
		}
	}
	requeue := map[string]deadletter.RequeueOption{
		"Reasons":    deadletter.Reasons(),
		"Reasons is": deadletter.Reasons("a", ""),
		"Kinds":      deadletter.Kinds(""),
		"MinAge":     deadletter.MinAge(-1),
		"MaxReplays": deadletter.MaxReplays(0),
		"Batch":      deadletter.Batch(deadletter.MaxBatch + 1),
		"Look":       deadletter.Look(-1),
		"Every":      deadletter.Every(0),
		"Clock":      deadletter.Clock(nil, time.After),
	}
	for want, o := range requeue {
		if _, err := deadletter.NewRequeue(&desk{}, o); !errors.Is(err, zq.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a fault of %q, got %v", want, err)
		}
	}
	for _, none := range []deadletter.Letters{nil, (*zq.Inspector)(nil)} {
		if _, err := deadletter.NewRequeue(none); !errors.Is(err, zq.ErrInvalid) {
			t.Errorf("without letters: %v", err)
		}
	}
	if _, err := deadletter.New(nil, deadletter.Pause(time.Millisecond), deadletter.SendTimeout(time.Millisecond), deadletter.Route("x", deadletter.Target{})); err != nil {
		t.Error(err)
	}
}
