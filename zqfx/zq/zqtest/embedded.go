package zqtest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// EmbeddedRedis is a Redis inside this process: no binary, no disk, and
// nothing left when it closes. It is for demos and for unit tests of code that
// uses zqueue; it is not Redis (see the package doc), and a test of a script
// or of order belongs on [Redis]. It is safe for concurrent use.
//
// Its clock is the machine's until the first [EmbeddedRedis.Advance]; from then
// on it stands, and moves by Advance alone.
type EmbeddedRedis struct {
	mini *miniredis.Miniredis

	mu      sync.Mutex
	now     time.Time // zero: the machine's clock
	expired time.Time // until when expiry has followed it
	clients []*redis.Client

	stop    sync.Once
	closing chan struct{}
	ticking sync.WaitGroup
}

// Embedded starts an embedded Redis that closes with the test.
func Embedded(t testing.TB) *EmbeddedRedis {
	t.Helper()
	e, err := StartEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// StartEmbedded starts an embedded Redis on a free loopback port, for a demo
// that should run without a server. Everything in it is lost when it closes or
// the program exits; a demo should print that. The caller closes it.
func StartEmbedded() (*EmbeddedRedis, error) {
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return nil, fmt.Errorf("zqtest: embedded Redis: %w", err)
	}
	e := &EmbeddedRedis{mini: mini, expired: time.Now(), closing: make(chan struct{})}
	e.ticking.Go(e.expire)
	return e, nil
}

// expiryTick is how late an expired key may go, where there are not very many.
const expiryTick = 20 * time.Millisecond

// expire lets expiry follow the clock until Close, and spends a tenth of the
// time on that at most. miniredis can do it by itself, and then goes through
// all keys at each access.
func (e *EmbeddedRedis) expire() {
	timer := time.NewTimer(expiryTick)
	defer timer.Stop()
	for {
		select {
		case <-e.closing:
			return
		case began := <-timer.C:
			e.mu.Lock()
			e.age()
			e.mu.Unlock()
			timer.Reset(max(expiryTick, 9*time.Since(began)))
		}
	}
}

// age shortens what is left to keys by the time that has passed.
func (e *EmbeddedRedis) age() {
	if now := e.clock(); now.After(e.expired) {
		e.mini.FastForward(now.Sub(e.expired))
		e.expired = now
	}
}

// Addr is the host:port to connect to.
func (e *EmbeddedRedis) Addr() string { return e.mini.Addr() }

// URL is the address as redis.ParseURL reads it.
func (e *EmbeddedRedis) URL() string { return "redis://" + e.Addr() + "/0" }

// Client is a new go-redis client, closed by Close. Each change is applied to
// its options first.
func (e *EmbeddedRedis) Client(changes ...func(*redis.Options)) *redis.Client {
	opts := &redis.Options{Addr: e.Addr()}
	for _, change := range changes {
		change(opts)
	}
	rdb := redis.NewClient(opts)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clients = append(e.clients, rdb)
	return rdb
}

// Now is what TIME says.
func (e *EmbeddedRedis) Now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clock()
}

// Advance moves TIME and expiry ahead by d together, and wakes the idle
// consumers of every queue in database 0, so that what has come due runs now.
// With the first call the clock stops being the machine's: Advance(0) freezes
// it. A blocked command keeps waiting in real time.
func (e *EmbeddedRedis) Advance(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.now = e.clock().Add(d)
	e.mini.SetTime(e.now)
	e.age()
	e.wake()
}

// Close disconnects all clients and throws the data away. It may be called
// more than once.
func (e *EmbeddedRedis) Close() {
	e.stop.Do(func() { close(e.closing) })
	e.ticking.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, rdb := range e.clients {
		_ = rdb.Close() // the caller may have closed it
	}
	e.mini.Close()
}

func (e *EmbeddedRedis) clock() time.Time {
	if e.now.IsZero() {
		return time.Now()
	}
	return e.now
}

// wake sets the wake-up marker of each queue. A consumer blocks until the next
// due time as it was when it looked, by the machine's clock; nothing but the
// marker tells it that time has jumped. Any member will do.
func (e *EmbeddedRedis) wake() {
	seen := map[string]bool{}
	for _, key := range e.mini.Keys() {
		end := strings.Index(key, "}:")
		if !strings.HasPrefix(key, "zq:{") || end < 0 || seen[key[:end]] {
			continue
		}
		seen[key[:end]] = true
		_, _ = e.mini.ZAdd(key[:end]+"}:wake", 0, "advance") // fails on a foreign key of that name: not ours
	}
}
