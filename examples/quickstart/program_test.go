package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// shippedTable is the table for the export that ships with the example.
func shippedTable() map[string]int {
	return map[string]int{
		"read": 2378, "malformed": 6, "duplicates": 40, "accepted": 2332,
		"processed": 2331, "retried": 12, "dead": 1, "unknown_currency": 1,
		"order violations": 0, "lost": 0, "doubled": 0,
	}
}

// shippedLetter is what is said of its one dead letter.
var shippedLetter = []string{
	`dead letter "SO-104493/paid/33"`, `key       "Ines Horvat"`, `"currency":"XXX"`, "reason    unknown_currency",
	`error     "no exchange rate for 18900 minor units of XXX"`, "attempts  1", "enqueued  20", "died      20",
	"an operator adds XXX to the exchange table", "replayed 1: 1 processed, 0 dead again",
}

func TestProgram(t *testing.T) {
	t.Parallel()
	p := build(t)
	for name, check := range map[string]func(*testing.T, program){
		"embedded":                       checkEmbedded,
		"real":                           checkReal,
		"twice on one queue":             checkTwice,
		"stdin":                          checkSmall,
		"interrupted":                    checkInterrupted,
		"interrupted twice":              checkImpatient,
		"drains":                         checkDrains,
		"gives up":                       checkGivesUp,
		"killed when only Redis knows":   func(t *testing.T, p program) { checkKilled(t, p, fromSettling(eventID(t, 999))) },
		"killed when the chain knows":    checkKilledBooked,
		"the queue has forgotten it all": checkForgotten,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p)
		})
	}
}

func checkEmbedded(t *testing.T, p program) {
	r := p.run(t, nil)
	r.want(t, statusGood, append(shippedLetter, "redis: embedded in this program, so all is lost when it exits",
		"while its customer's later events waited\n  attempt 1 of 5: the payment gateway timed out; again in 50ms\n"+
			"  attempt 2 of 5: the payment gateway timed out; again in 50ms\ndead letter ",
		"queue quickstart-orders verifies clean and is empty")...)
	wantTable(t, r, shippedTable())
	if !strings.Contains(r.log, "events: 2378 of 2378 (100 %)") {
		t.Errorf("progress ends otherwise:\n%s", r.log)
	}
	for text := range strings.Lines(r.log) {
		if !strings.HasPrefix(text, "events: ") {
			t.Errorf("in the way of the progress: %s", text)
		}
	}
}

func checkReal(t *testing.T, p program) {
	server := zqtest.Redis(t, zqtest.WithConfig("requirepass", "s3cret"))
	queue := zqtest.Queue(t)
	r := p.run(t, nil, "-redis", server.URL(), "-queue", queue)
	r.want(t, statusGood, append(shippedLetter, "xxxxx@"+server.Addr(), "queue "+queue+" verifies clean and is empty")...)
	wantTable(t, r, shippedTable())
	if strings.Contains(r.out+r.log, "s3cret") {
		t.Errorf("the password shows:\n%s%s", r.out, r.log)
	}
	wantCounters(t, server, queue, zq.Counters{Enqueued: 2332, Duplicates: 40, Acked: 2332, Failed: 25, Dead: 1, Replayed: 1})
}

func checkTwice(t *testing.T, p program) {
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	p.run(t, nil, "-redis", server.URL(), "-queue", queue).want(t, statusGood)
	r := p.run(t, nil, "-redis", server.URL(), "-queue", queue)
	r.want(t, statusGood, "The queue knew all of them from an earlier run", "verifies clean and is empty")
	wantTable(t, r, map[string]int{
		"read": 2378, "malformed": 6, "duplicates": 2372, "accepted": 0, "processed": 0, "retried": 0, "dead": 0,
		"order violations": 0, "lost": 0, "doubled": 0,
	})
}

// checkForgotten runs twice, and the second time the queue takes all events again: their ids' hour is over. The chain
// knows them for longer.
func checkForgotten(t *testing.T, p program) {
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	p.run(t, nil, "-redis", server.URL(), "-queue", queue).want(t, statusGood)
	if n, err := server.Client().Del(t.Context(), "zq:{"+queue+"}:done").Result(); n != 1 || err != nil {
		t.Fatalf("%d keys, %v", n, err)
	}
	r := p.run(t, nil, "-redis", server.URL(), "-queue", queue)
	r.want(t, statusGood, "verifies clean and is empty")
	wantTable(t, r, map[string]int{
		"read": 2378, "malformed": 6, "duplicates": 40, "accepted": 2332, "processed": 0, "skipped": 2332, "retried": 0,
		"dead": 0, "order violations": 0, "lost": 0, "doubled": 0,
	})
}

// small has a line of each sort: three that are no events, a repeated one, two customers whose payments fail
// twice and for ever, one in a currency nobody knows.
const small = `
{"order_id":"A-1","customer":"Ann","sequence":1,"kind":"placed","amount":{"minor":1290,"currency":"EUR"},"at":"2025-11-28T09:00:00Z"}
{"order_id":"B-1","customer":"Bob","sequence":1,"kind":"placed","amount":{"minor":100,"currency":"GBP"},"at":"2025-11-28T09:00:00Z"}
{"order_id":"A-1","customer":"Ann","sequence":2,"kind":"paid","amount":{"minor":1290,"currency":"EUR"},"at":"2025-11-28T09:01:00Z","gateway_timeouts":2}
not JSON

{"order_id":"A-1","customer":"Ann","sequence":1,"kind":"placed","amount":{"minor":1290,"currency":"EUR"},"at":"2025-11-28T09:00:00Z"}
{"order_id":"A-1","customer":"Ann","sequence":3,"kind":"shipped","amount":{"minor":1290,"currency":"EUR"},"at":"2025-11-28T10:00:00Z"}
{"order_id":"B-1","customer":"Bob","sequence":2,"kind":"paid","amount":{"minor":100,"currency":"GBP"},"at":"2025-11-28T09:05:00Z","gateway_timeouts":99}
{"order_id":"C-1","customer":"","sequence":1,"kind":"placed","amount":{"minor":1,"currency":"EUR"},"at":"2025-11-28T09:00:00Z"}
{"order_id":"B-1","customer":"Bob","sequence":3,"kind":"refunded","amount":{"minor":100,"currency":"GBP"},"at":"2025-11-28T11:00:00Z"}
{"order_id":"D-1","customer":"Zoë","sequence":1,"kind":"paid","amount":{"minor":5,"currency":"QQQ"},"at":"2025-11-28T09:00:00Z"}
{"order_id":"D-1"`

func checkSmall(t *testing.T, p program) {
	server, queue := zqtest.Shared(t), zqtest.Queue(t)
	r := p.run(t, strings.NewReader(small), "-redis", server.URL(), "-queue", queue, "-file", "-")
	r.want(t, statusGood, "tried again", "attempt 1 of 5: the payment gateway timed out; again in 50ms")
	r.want(t, statusGood, "input: stdin", "no event: line 5: not JSON", "no event: line 10: field customer is empty",
		`dead letter "B-1/paid/2"`, "reason    attempts", "attempts  5", `error     "the payment gateway timed out"`,
		`dead letter "D-1/paid/1"`, `key       "Zoë"`, "an operator adds QQQ", "replayed 1: 1 processed, 0 dead again",
		"queue "+queue+" verifies clean; 1 dead letters are left in it")
	wantTable(t, r, map[string]int{
		"read": 11, "malformed": 3, "duplicates": 1, "accepted": 7, "processed": 5, "retried": 2,
		"dead": 2, "attempts": 1, "unknown_currency": 1, "order violations": 0, "lost": 0, "doubled": 0,
	})
}

func wantTable(t *testing.T, r result, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, r.table(t)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func wantCounters(t *testing.T, server *zqtest.Server, queue string, want zq.Counters) {
	t.Helper()
	got, err := inspector(t, server, queue).Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

func inspector(t *testing.T, server *zqtest.Server, queue string) *zq.Inspector {
	t.Helper()
	i, err := zq.NewInspector(server.Client(), queue)
	if err != nil {
		t.Fatal(err)
	}
	return i
}
