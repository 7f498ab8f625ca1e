package zqtest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestRedisServersAreApart(t *testing.T) {
	t.Parallel()
	a, b := zqtest.Redis(t), zqtest.Redis(t)
	if a.Addr() == b.Addr() || a.Pid() == b.Pid() || a.Dir() == b.Dir() {
		t.Fatalf("two servers share something: %s %s", a.Addr(), b.Addr())
	}
	for _, s := range []*zqtest.Server{a, b} {
		if strings.HasSuffix(s.Addr(), ":6379") || !strings.HasPrefix(s.Addr(), "127.0.0.1:") {
			t.Errorf("address %s", s.Addr())
		}
	}
	ctx := t.Context()
	must(t, a.Client().Set(ctx, "k", "a", 0).Err())
	if n := b.Client().Exists(ctx, "k").Val(); n != 0 {
		t.Error("a key of one server is on the other")
	}
}

func TestServerIsGoneAfterItsTest(t *testing.T) {
	t.Parallel()
	var addr string
	if complaint := failing(t, func(t testing.TB) { addr = zqtest.Redis(t).Addr() }); complaint != "" {
		t.Fatal(complaint)
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Error("the server still answers")
	}
}

func TestRestartKeepsPortAndLosesData(t *testing.T) {
	t.Parallel()
	s := zqtest.Redis(t)
	rdb, addr, pid := s.Client(), s.Addr(), s.Pid()
	must(t, rdb.Set(t.Context(), "k", "v", 0).Err())
	s.Restart()
	if s.Addr() != addr || s.Pid() == pid {
		t.Errorf("addr %s, was %s; pid %d, was %d", s.Addr(), addr, s.Pid(), pid)
	}
	if n, err := rdb.Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Errorf("exists: %d, %v", n, err)
	}
}

func TestAppendOnlySurvivesKill(t *testing.T) {
	t.Parallel()
	s := zqtest.Redis(t, zqtest.WithAppendOnly())
	rdb := s.Client()
	for i := range 100 {
		must(t, rdb.RPush(t.Context(), "l", i).Err())
	}
	s.Kill()
	s.Restart()
	if n, err := rdb.LLen(t.Context(), "l").Result(); err != nil || n != 100 {
		t.Errorf("%d of 100 are left, %v", n, err)
	}
}

func TestStopIsFinalUntilRestart(t *testing.T) {
	t.Parallel()
	s := zqtest.Redis(t)
	rdb := s.Client(func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 })
	s.Stop()
	s.Stop()
	if rdb.Ping(t.Context()).Err() == nil {
		t.Error("a stopped server answers")
	}
	s.Restart()
	must(t, rdb.Ping(t.Context()).Err())
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := zqtest.Redis(t)
	rdb := s.Client(func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 50*time.Millisecond, -1 })
	must(t, rdb.Ping(t.Context()).Err())
	s.Pause()
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	zqtest.Eventually(t, limit, func() bool { return rdb.Get(t.Context(), "k").Val() == "v" },
		"the command that was sent in the pause")
	s.Pause() // and the cleanup has to cope
}

func TestStopEndsAPausedServerInGoodOrder(t *testing.T) {
	t.Parallel()
	s := zqtest.Redis(t)
	s.Pause()
	s.Stop()
	log, err := os.ReadFile(filepath.Join(s.Dir(), "redis-server.log"))
	if err != nil || !strings.Contains(string(log), "bye bye") {
		t.Errorf("%v; the log: %s", err, log)
	}
}

func TestWithConfigReachesTheServer(t *testing.T) {
	t.Parallel()
	s := zqtest.Redis(t,
		zqtest.WithConfig("maxmemory", "7mb"),
		zqtest.WithConfig("client-output-buffer-limit", "pubsub", "1mb", "1mb", "5"),
		zqtest.WithConfig("requirepass", "se cret"))
	got, err := s.Client().ConfigGet(t.Context(), "maxmemory").Result()
	if err != nil || got["maxmemory"] != "7340032" {
		t.Errorf("maxmemory: %v, %v", got, err)
	}
	opts, err := redis.ParseURL(s.URL())
	must(t, err)
	byURL := redis.NewClient(opts)
	t.Cleanup(func() { _ = byURL.Close() })
	must(t, byURL.Ping(t.Context()).Err())
}

func TestBadConfigSaysWhy(t *testing.T) {
	t.Parallel()
	complaint := failing(t, func(t testing.TB) { zqtest.Redis(t, zqtest.WithConfig("no-such-setting", "1")) })
	wantComplaint(t, complaint, "no-such-setting", "exited with code 1")
}

// Not parallel: it sets the environment.
func TestServerBinaryIsJudged(t *testing.T) {
	old := filepath.Join(t.TempDir(), "redis-server")
	must(t, os.WriteFile(old, []byte("#!/bin/sh\necho 'Redis server v=6.2.14 sha=0'\n"), 0o700))
	tests := map[string]struct {
		path string
		want []string
	}{
		"missing":  {filepath.Join(t.TempDir(), "none"), []string{"apt-get install redis-server", "brew install redis", "ZQ_REDIS_SERVER"}},
		"too old":  {old, []string{"6.2.14", "7.0 or newer"}},
		"no redis": {"/bin/echo", []string{"no redis-server"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ZQ_REDIS_SERVER", test.path)
			wantComplaint(t, failing(t, func(t testing.TB) { zqtest.Redis(t) }), test.want...)
		})
	}
}

func TestSharedServerIsOneAndGuarded(t *testing.T) {
	t.Parallel()
	a, b := zqtest.Shared(t), zqtest.Shared(t)
	if a.Addr() != b.Addr() {
		t.Error("Shared gave two servers")
	}
	for name, disturb := range map[string]func(*zqtest.Server){
		"Kill": (*zqtest.Server).Kill, "Stop": (*zqtest.Server).Stop, "Restart": (*zqtest.Server).Restart,
		"Pause": (*zqtest.Server).Pause, "Resume": (*zqtest.Server).Resume,
	} {
		wantComplaint(t, failing(t, func(t testing.TB) { disturb(zqtest.Shared(t)) }), name+" on the shared server")
	}
	must(t, a.Client().Ping(context.Background()).Err())
}

func TestQueueNamesAreValidAndUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range []string{"plain", "with spaces/and ünicode{}", strings.Repeat("long", 60)} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				q := zqtest.Queue(t)
				if seen[q] || len(q) > 128 || strings.Trim(q, queueAlphabet) != "" {
					t.Errorf("queue name %q", q)
				}
				seen[q] = true
			}
		})
	}
}

const queueAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
