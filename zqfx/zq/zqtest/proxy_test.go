package zqtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// rig is a server, a proxy before it, and a client to each.
type rig struct {
	server  *zqtest.Server
	proxy   *zqtest.FaultProxy
	direct  *redis.Client
	proxied *redis.Client
}

// setup gives clients that do not retry, so that a loss is seen.
func setup(t *testing.T, changes ...func(*redis.Options)) *rig {
	t.Helper()
	s := zqtest.Redis(t)
	r := &rig{server: s, proxy: zqtest.Proxy(t, s.Addr()), direct: s.Client()}
	r.proxied = r.client(t, append([]func(*redis.Options){noRetry}, changes...)...)
	return r
}

func noRetry(o *redis.Options) { o.MaxRetries = -1 }

func (r *rig) client(t *testing.T, changes ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return r.server.Client(append([]func(*redis.Options){func(o *redis.Options) { o.Addr = r.proxy.Addr() }}, changes...)...)
}

func TestDropReplyLosesOneReplyAfterTheServerActed(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t), t.Context()
	lost := r.proxy.DropReply(zqtest.Command("incr", "n"), 1)
	if err := r.proxied.Incr(ctx, "other").Err(); err != nil {
		t.Fatalf("a command that does not match: %v", err)
	}
	if err := r.proxied.Incr(ctx, "n").Err(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want EOF", err)
	}
	zqtest.Wait(t, lost.Done(), limit)
	if n := r.direct.Get(ctx, "n").Val(); n != "1" {
		t.Errorf("n is %q: the server should have acted", n)
	}
	if n, err := r.proxied.Incr(ctx, "n").Result(); err != nil || n != 2 {
		t.Errorf("the next INCR: %d, %v", n, err)
	}
	if lost.Struck() != 1 {
		t.Errorf("struck %d times", lost.Struck())
	}
}

func TestDropReplyMakesGoRedisRetry(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.proxy.DropReply(zqtest.Command("INCR"), 2)
	n, err := r.client(t).Incr(t.Context(), "n").Result()
	if err != nil || n != 3 {
		t.Errorf("got %d, %v; want 3: two lost, one heard", n, err)
	}
}

func TestDropCommandKeepsItFromTheServer(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t), t.Context()
	lost := r.proxy.DropCommand(zqtest.Command("INCR"), 1)
	if err := r.proxied.Incr(ctx, "n").Err(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want EOF", err)
	}
	zqtest.Wait(t, lost.Done(), limit)
	if n, err := r.proxied.Incr(ctx, "n").Result(); err != nil || n != 1 {
		t.Errorf("the next INCR: %d, %v", n, err)
	}
}

func TestDropReplyInsideAPipeline(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.proxy.DropReply(zqtest.Command("SET", "k5"), 1)
	conn := dial(t, r.proxy.Addr())
	lines := make([]string, 10)
	for i := range lines {
		lines[i] = fmt.Sprintf("SET k%d v", i)
	}
	ask(t, conn, lines...)
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != strings.Repeat("+OK\r\n", 5) {
		t.Errorf("got %q, %v; want the five replies ahead of the loss, then EOF", got, err)
	}
	if n := r.direct.Exists(t.Context(), "k0", "k1", "k2", "k3", "k4", "k5").Val(); n != 6 {
		t.Errorf("the server has %d of the 6 up to the loss", n)
	}
}

func TestPipelinesKeepWorking(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t), t.Context()
	lost := r.proxy.DropReply(zqtest.Command("SET", "x"), 1)
	pipe := r.proxied.Pipeline()
	pipe.Set(ctx, "w", "v", 0)
	pipe.Set(ctx, "x", "v", 0)
	if _, err := pipe.Exec(ctx); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want EOF", err)
	}
	zqtest.Wait(t, lost.Done(), limit)
	pipe = r.proxied.Pipeline()
	for i := range 1000 {
		pipe.IncrBy(ctx, "n", int64(i))
	}
	cmds, err := pipe.Exec(ctx)
	must(t, err)
	sum := int64(0)
	for i, cmd := range cmds {
		if sum += int64(i); cmd.(*redis.IntCmd).Val() != sum {
			t.Fatalf("reply %d is %d, want %d", i, cmd.(*redis.IntCmd).Val(), sum)
		}
	}
}

func TestMatchByScriptAndKey(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t), t.Context()
	script := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
	must(t, script.Load(ctx, r.direct).Err())
	lost := r.proxy.DropReply(zqtest.Command("EVALSHA", script.Hash(), "b"), 1)
	must(t, script.Run(ctx, r.proxied, []string{"a"}, 5).Err())
	if err := script.Run(ctx, r.proxied, []string{"b"}, 5).Err(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want EOF", err)
	}
	zqtest.Wait(t, lost.Done(), limit)
	if got := r.direct.MGet(ctx, "a", "b").Val(); got[0] != "5" || got[1] != "5" {
		t.Errorf("a, b = %v", got)
	}
}

func TestExactlyNRepliesAreLostConcurrentSafe(t *testing.T) {
	t.Parallel()
	const clients, each, losses = 8, 25, 10
	r := setup(t)
	lost := r.proxy.DropReply(zqtest.Command("INCR"), losses)
	counted := r.proxy.Count(zqtest.Command("INCR"))
	var wg sync.WaitGroup
	var failed sync.Map
	for c := range clients {
		wg.Go(func() {
			for i := range each {
				if r.proxied.Incr(context.Background(), "n").Err() != nil {
					failed.Store([2]int{c, i}, true)
				}
			}
		})
	}
	wg.Wait()
	failures := 0
	failed.Range(func(any, any) bool { failures++; return true })
	n, _ := r.direct.Get(t.Context(), "n").Int()
	if failures != losses || lost.Struck() != losses || n != clients*each {
		t.Errorf("%d failures, struck %d, n %d", failures, lost.Struck(), n)
	}
	if counted.Commands() != clients*each || counted.Replies() != clients*each {
		t.Errorf("counted %d commands, %d replies", counted.Commands(), counted.Replies())
	}
}

func TestHoldReplyKeepsOrderUntilReleased(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t, func(o *redis.Options) { o.ReadTimeout = limit }), t.Context()
	hold := r.proxy.HoldReply(zqtest.Command("INCR"))
	got := make(chan []redis.Cmder, 1)
	go func() {
		pipe := r.proxied.Pipeline()
		pipe.Set(ctx, "before", "1", 0)
		pipe.Incr(ctx, "n")
		pipe.Set(ctx, "after", "1", 0)
		cmds, _ := pipe.Exec(ctx)
		got <- cmds
	}()
	zqtest.Wait(t, hold.Done(), limit)
	if n := r.direct.Get(ctx, "n").Val(); n != "1" {
		t.Errorf("n is %q while its reply is held", n)
	}
	select {
	case <-got:
		t.Fatal("the held reply arrived")
	default:
	}
	hold.Release()
	hold.Release()
	for _, cmd := range zqtest.Wait(t, got, limit) {
		must(t, cmd.Err())
	}
	must(t, r.proxied.Incr(ctx, "n").Err())
}

func TestDelayHoldsTheCommandBack(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t, func(o *redis.Options) { o.ReadTimeout = limit }), t.Context()
	slow := r.proxy.Delay(zqtest.Command("SET", "slow"), time.Hour)
	over := make(chan error, 1)
	go func() { over <- r.proxied.Set(ctx, "slow", "v", 0).Err() }()
	zqtest.Wait(t, slow.Done(), limit)
	if n := r.direct.Exists(ctx, "slow").Val(); n != 0 {
		t.Error("the server has it already")
	}
	must(t, r.proxied.Set(ctx, "fast", "v", 0).Err()) // on another connection
	slow.Release()
	must(t, zqtest.Wait(t, over, limit))
	quick := r.proxy.Delay(zqtest.Command("GET"), 20*time.Millisecond)
	start := time.Now()
	must(t, r.proxied.Get(ctx, "slow").Err())
	if took := time.Since(start); took < 20*time.Millisecond || quick.Struck() != 1 {
		t.Errorf("took %v, struck %d", took, quick.Struck())
	}
}

func TestCutAndHeal(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t), t.Context()
	must(t, r.proxied.Ping(ctx).Err())
	r.proxy.Cut()
	if r.proxied.Ping(ctx).Err() == nil {
		t.Error("a ping got through the cut")
	}
	must(t, r.direct.Ping(ctx).Err())
	r.proxy.Heal()
	must(t, r.proxied.Ping(ctx).Err())
}

func TestCutWakesABlockedCommand(t *testing.T) {
	t.Parallel()
	r := setup(t)
	blocked := r.proxy.Count(zqtest.Command("BZPOPMIN"))
	over := make(chan error, 1)
	go func() { over <- r.proxied.BZPopMin(context.Background(), 0, "none").Err() }()
	zqtest.Eventually(t, limit, func() bool { return blocked.Commands() == 1 }, "the blocking command")
	r.proxy.Cut()
	if zqtest.Wait(t, over, limit) == nil {
		t.Error("it was answered")
	}
	if blocked.Replies() != 0 {
		t.Errorf("%d replies", blocked.Replies())
	}
}

func TestBlockingCommandIsAnswered(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t), t.Context()
	over := make(chan *redis.ZWithKey, 1)
	go func() { over <- r.proxied.BZPopMin(ctx, limit, "z").Val() }()
	must(t, r.direct.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "m"}).Err())
	if got := zqtest.Wait(t, over, limit); got == nil || got.Member != "m" {
		t.Errorf("got %v", got)
	}
}

func TestServerDeathReachesTheClient(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t), t.Context()
	must(t, r.proxied.Ping(ctx).Err())
	r.server.Kill()
	if r.proxied.Ping(ctx).Err() == nil {
		t.Error("a dead server answers")
	}
	r.server.Restart()
	must(t, r.proxied.Ping(ctx).Err())
}

func TestBothProtocolsPassUnchanged(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
			t.Parallel()
			r, ctx := setup(t, func(o *redis.Options) { o.Protocol = protocol }), t.Context()
			big := strings.Repeat("x\r\n$1\r\n", 50_000)
			must(t, r.proxied.HSet(ctx, "h", "f", big, "g", "").Err())
			if got := r.proxied.HGetAll(ctx, "h").Val(); got["f"] != big || got["g"] != "" || len(got) != 2 {
				t.Error("a hash came back changed")
			}
			must(t, r.proxied.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "m"}).Err())
			if got := r.proxied.ZRangeWithScores(ctx, "z", 0, -1).Val(); len(got) != 1 || got[0].Score != 1.5 {
				t.Errorf("scores: %v", got)
			}
			if err := r.proxied.Get(ctx, "none").Err(); !errors.Is(err, redis.Nil) {
				t.Errorf("nil: %v", err)
			}
			if err := r.proxied.Do(ctx, "NOSUCH").Err(); err == nil || !strings.Contains(err.Error(), "unknown command") {
				t.Errorf("error reply: %v", err)
			}
			if got := r.proxied.Eval(ctx, "return {1,{2,{3,'x'}},false}", nil).String(); !strings.Contains(got, "[2 [3 x]]") {
				t.Errorf("nested: %s", got)
			}
		})
	}
}

func TestSubscriptionsPassAndSpoilNothing(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
			t.Parallel()
			r, ctx := setup(t, func(o *redis.Options) { o.Protocol = protocol }), t.Context()
			sub := r.proxied.Subscribe(ctx, "news", "more")
			t.Cleanup(func() { _ = sub.Close() })
			_, err := sub.Receive(ctx)
			must(t, err)
			must(t, r.proxied.Publish(ctx, "news", "hello").Err())
			if got := zqtest.Wait(t, sub.Channel(), limit); got.Payload != "hello" {
				t.Errorf("got %v", got)
			}
			counted := r.proxy.Count(zqtest.Command("SET"))
			must(t, r.proxied.Set(ctx, "k", "v", 0).Err())
			if counted.Replies() != 1 {
				t.Errorf("%d replies", counted.Replies())
			}
		})
	}
}

func TestPushesBelongToNoCommand(t *testing.T) {
	t.Parallel()
	r := setup(t)
	lost := r.proxy.DropReply(zqtest.Command("PUBLISH"), 1)
	conn := dial(t, r.proxy.Addr())
	// The message comes on this connection, ahead of the reply to PUBLISH.
	ask(t, conn, "HELLO 3", "SUBSCRIBE news", "PUBLISH news hi", "PING")
	zqtest.Wait(t, lost.Done(), limit)
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasSuffix(string(got), ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n") {
		t.Errorf("got %q, %v; want the message last", got, err)
	}
}

func TestRESP2SubscriptionIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := setup(t)
	lost := r.proxy.DropReply(zqtest.Command("PING"), 1)
	conn := dial(t, r.proxy.Addr())
	ask(t, conn, "SUBSCRIBE news", "PING")
	want := "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want || lost.Struck() != 0 {
		t.Errorf("got %q, %v; struck %d", got, err, lost.Struck())
	}
}

func TestInlineCommandsAndBlankLines(t *testing.T) {
	t.Parallel()
	r := setup(t)
	counted := r.proxy.Count(nil)
	conn := dial(t, r.proxy.Addr())
	ask(t, conn, "", "PING", "ECHO hi")
	must(t, conn.(*net.TCPConn).CloseWrite()) // half-closed: replies still come
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != "+PONG\r\n$2\r\nhi\r\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if counted.Commands() != 2 || counted.Replies() != 2 {
		t.Errorf("%d commands, %d replies", counted.Commands(), counted.Replies())
	}
}

func TestTrafficIsCountedPerConnectionAndInAll(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for n := range 3 {
		conn := dial(t, r.proxy.Addr())
		for range n {
			ask(t, conn, "PING")
		}
		must(t, conn.(*net.TCPConn).CloseWrite())
		_, err := io.ReadAll(conn)
		must(t, err)
	}
	conns := r.proxy.Conns()
	for n, c := range conns {
		if c.Commands != n || c.Replies != n {
			t.Errorf("connection %d: %+v", n, c)
		}
	}
	if total := r.proxy.Total(); len(conns) != 3 || total.Commands != 3 || total.Replies != 3 {
		t.Errorf("%d connections, total %+v", len(conns), total)
	}
}

func TestWhatIsNoRESPFailsTheTest(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_ = conn.Close()
		}
	}()
	complaint := failing(t, func(t testing.TB) {
		proxy := zqtest.Proxy(t, l.Addr().String())
		_, _ = io.ReadAll(dial(t, proxy.Addr()))
	})
	wantComplaint(t, complaint, "not RESP")
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(limit)))
	return conn
}

func ask(t testing.TB, conn net.Conn, lines ...string) {
	t.Helper()
	_, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n")
	must(t, err)
}
