package zqfxtest_test

import (
	"testing"

	"github.com/zqueue/zqueue/zqfx"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zqfxtest"
)

// to matches mail to somebody.
func to(name string) func(zqfxtest.Enqueued[Mail]) bool {
	return func(e zqfxtest.Enqueued[Mail]) bool { return e.Payload.To == name }
}

func TestRequireEnqueued(t *testing.T) {
	t.Parallel()
	app := zqfxtest.New(t, zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue("mail"), zqfx.Queue("empty"))
	post(t, app, "zoe", "ada", "bob")
	for range 3 {
		if _, err := Remind.Send(t.Context(), app.Producer("mail"), Mail{To: "ada"}, zq.WithKey("k")); err != nil {
			t.Fatal(err)
		}
	}
	all := zqfxtest.RequireEnqueued(t, app, "mail", Send)
	if len(all) != 3 || all[0].Payload.To != "zoe" || all[1].Payload.To != "ada" || all[2].Payload.To != "bob" {
		t.Errorf("all of the kind, in their order: %+v", all)
	}
	if all[0].ID != "zoe" || all[0].State != zq.StatePending || all[0].Message.Kind != "mail.send" {
		t.Errorf("its place: %+v", all[0].Info)
	}
	keyed := func(e zqfxtest.Enqueued[Mail]) bool { return e.Message.Key == "k" }
	if got := zqfxtest.RequireEnqueued(t, app, "mail", Remind, to("ada"), keyed); len(got) != 3 {
		t.Errorf("%d match", len(got))
	}
	if got := zqfxtest.RequireEnqueued(t, app, "mail", Send, to("ada")); len(got) != 1 {
		t.Errorf("%d match", len(got))
	}
	renamed := zq.NewKind[Mail]("mail.post", zq.WithAliases("mail.send"))
	if got := zqfxtest.RequireEnqueued(t, app, "mail", renamed); len(got) != 3 {
		t.Errorf("%d by an alias", len(got))
	}
}

// One that is not there, by any of the conditions, fails the test and says what is there.
func TestRequireEnqueuedFailsTheTest(t *testing.T) {
	t.Parallel()
	app := zqfxtest.New(t, zqfx.Module(zqfx.ProducerOnly()), zqfx.Queue("mail"), zqfx.Queue("empty"))
	post(t, app, "a", "b", "c", "d", "e", "f", "g")
	failing(t, func(t testing.TB) { zqfxtest.RequireEnqueued(t, app, "empty", Send) }, "mail.send", "empty", "nothing")
	failing(t, func(t testing.TB) { zqfxtest.RequireEnqueued(t, app, "mail", Remind) },
		"mail.remind", `of kind "mail.send"`, "2 more")
	failing(t, func(t testing.TB) { zqfxtest.RequireEnqueued(t, app, "mail", Send, to("zoe")) }, "matches")
	failing(t, func(t testing.TB) { zqfxtest.RequireEnqueued(t, app, "mail", Send, to("a"), to("b")) }, "matches")
	failing(t, func(t testing.TB) { zqfxtest.RequireEnqueued(t, app, "unknown", Send) }, "unknown")
	torn := zq.Message{ID: "torn", Kind: "mail.send", Body: []byte("{")}
	if _, err := app.Producer("mail").Enqueue(t.Context(), torn); err != nil {
		t.Fatal(err)
	}
	failing(t, func(t testing.TB) { zqfxtest.RequireEnqueued(t, app, "mail", Send) }, "mail/torn")
}

// What is acked is gone; what is delayed, or a dead letter, is there and says so.
func TestRequireEnqueuedSeesStates(t *testing.T) {
	t.Parallel()
	handle := func(d *zq.Delivery) error {
		if d.ID == "dies" {
			return zq.Dead("why", nil)
		}
		return nil
	}
	app := zqfxtest.New(t, mails(by(handle)))
	post(t, app, "acked", "dies")
	zqfxtest.WorkOne(t, app, "mail")
	zqfxtest.WorkOne(t, app, "mail")
	got := zqfxtest.RequireEnqueued(t, app, "mail", Send)
	if len(got) != 1 || got[0].ID != "dies" || got[0].State != zq.StateDead || got[0].Dead.Reason != "why" {
		t.Errorf("got %+v", got)
	}
}
