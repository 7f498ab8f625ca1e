package ratelimit_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// nowhere is a client of a server that nobody has started.
func nowhere(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// fields are those of all the *zq.InvalidError in err, sorted; anything else in it shows as its text.
func fields(err error) []string {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range many.Unwrap() {
			all = append(all, fields(e)...)
		}
		slices.Sort(all)
		return all
	}
	if invalid, ok := errors.AsType[*zq.InvalidError](err); ok && invalid.Value != "" && invalid.Want != "" {
		return []string{invalid.Field}
	}
	return []string{err.Error()}
}

// Every number has an exact meaning or is refused, by limiters of both kinds alike, and all faults are told at once.
func TestArgumentsOfLimiters(t *testing.T) {
	t.Parallel()
	const most = time.Duration(math.MaxInt64)
	const maxWait = ratelimit.MaxMaxWait
	all := []string{" limit", " burst", ": Line", ": MaxWait"}
	for name, c := range map[string]struct {
		limit float64
		burst int
		opts  []ratelimit.LimiterOption
		want  []string
	}{
		"good":             {limit: 10, burst: 1},
		"lowest":           {limit: ratelimit.MinLimit, burst: 1, opts: lineAndWait(1, time.Second)},
		"highest":          {limit: ratelimit.MaxLimit, burst: ratelimit.MaxBurst, opts: lineAndWait(ratelimit.MaxLine, maxWait)},
		"slow, long line":  {limit: ratelimit.MinLimit, burst: 30, opts: lineAndWait(ratelimit.MaxLine, ratelimit.MaxMaxWait)},
		"nil option":       {limit: 1, burst: 1, opts: []ratelimit.LimiterOption{nil}},
		"zeros":            {opts: lineAndWait(0, 0), want: all},
		"negative":         {limit: -1, burst: -1, opts: lineAndWait(-1, -1), want: all},
		"NaN":              {limit: math.NaN(), burst: 1, want: []string{" limit"}},
		"infinite":         {limit: math.Inf(1), burst: 1, want: []string{" limit"}},
		"minus infinite":   {limit: math.Inf(-1), burst: 1, want: []string{" limit"}},
		"too low":          {limit: math.Nextafter(ratelimit.MinLimit, 0), burst: 1, want: []string{" limit"}},
		"too high":         {limit: math.Nextafter(ratelimit.MaxLimit, math.Inf(1)), burst: 1, want: []string{" limit"}},
		"smallest float":   {limit: math.SmallestNonzeroFloat64, burst: 1, want: []string{" limit"}},
		"large burst":      {limit: 100, burst: ratelimit.MaxBurst + 1, want: []string{" burst"}},
		"largest of all":   {limit: 1, burst: math.MaxInt, opts: lineAndWait(math.MaxInt, most), want: all[1:]},
		"smallest of all":  {limit: 1, burst: math.MinInt, opts: lineAndWait(math.MinInt, -most), want: all[1:]},
		"burst of a month": {limit: ratelimit.MinLimit, burst: 31, want: []string{" burst"}},
		"long line":        {limit: 1, burst: 1, opts: lineAndWait(ratelimit.MaxLine+1, time.Second), want: []string{": Line"}},
		"short wait":       {limit: 1, burst: 1, opts: lineAndWait(1, time.Second-1), want: []string{": MaxWait"}},
		"long wait":        {limit: 1, burst: 1, opts: lineAndWait(1, ratelimit.MaxMaxWait+1), want: []string{": MaxWait"}},
	} {
		var local []ratelimit.LocalOption
		var shared []ratelimit.SharedOption
		for _, o := range c.opts {
			local, shared = append(local, o), append(shared, o)
		}
		l, err := ratelimit.Local(c.limit, c.burst, local...)
		checkFaults(t, name, "ratelimit.Local", err, l == nil, c.want)
		s, err := ratelimit.Shared(nowhere(t), "scope", c.limit, c.burst, shared...)
		checkFaults(t, name, "ratelimit.Shared", err, s == nil, c.want)
	}
}

func lineAndWait(n int, d time.Duration) []ratelimit.LimiterOption {
	return []ratelimit.LimiterOption{ratelimit.Line(n), ratelimit.MaxWait(d)}
}

func checkFaults(t *testing.T, name, kind string, err error, none bool, want []string) {
	t.Helper()
	var full []string
	for _, w := range want {
		full = append(full, kind+w)
	}
	slices.Sort(full)
	if got := fields(err); !slices.Equal(got, full) {
		t.Errorf("%s: faults of %q, want %q", name, got, full)
	}
	if none != (len(want) > 0) || len(want) > 0 && !errors.Is(err, zq.ErrInvalid) {
		t.Errorf("%s: made: %t, with %v", name, !none, err)
	}
}

// What only one kind has, all wrong at once.
func TestOwnArgumentsOfLimiters(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, -1, ratelimit.MaxMaxNames + 1, math.MaxInt} {
		l, err := ratelimit.Local(0, 1, ratelimit.MaxNames(n), ratelimit.Clock(nil))
		want := []string{"ratelimit.Clock", "ratelimit.Local limit", "ratelimit.MaxNames"}
		if got := fields(err); !slices.Equal(got, want) || l != nil {
			t.Errorf("MaxNames(%d): faults of %q, want %q", n, got, want)
		}
	}
	for _, n := range []int{1, ratelimit.MaxMaxNames} {
		if _, err := ratelimit.Local(1, 1, ratelimit.MaxNames(n)); err != nil {
			t.Errorf("MaxNames(%d): %v", n, err)
		}
	}
	for _, scope := range []string{"", "a/b", "{a}", "a:b", "a b", "é", "a\n", strings.Repeat("s", 129)} {
		s, err := ratelimit.Shared(nil, scope, 0, 1)
		want := []string{"ratelimit.Shared client", "ratelimit.Shared limit", "ratelimit.Shared scope"}
		if got := fields(err); !slices.Equal(got, want) || s != nil {
			t.Errorf("scope %q: faults of %q, want %q", scope, got, want)
		}
	}
	if _, err := ratelimit.Shared(nowhere(t), strings.Repeat("s", 128), 1, 1); err != nil {
		t.Error(err)
	}
}

func TestArgumentsOfTheMiddleware(t *testing.T) {
	t.Parallel()
	good, err := ratelimit.Local(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	noLocal, _ := ratelimit.Local(0, 0) // the error is ignored, as it happens
	noShared, _ := ratelimit.Shared(nil, "", 0, 0)
	queue := func(d *zq.Delivery) string { return d.Queue }
	for name, c := range map[string]struct {
		limiter ratelimit.Limiter
		opts    []ratelimit.Option
		want    []string
	}{
		"good": {limiter: good, opts: []ratelimit.Option{
			nil, ratelimit.PerKey(), ratelimit.FailClosed(), ratelimit.FailOpen(), ratelimit.OnLimiter(nil), ratelimit.Logger(nil),
		}},
		"nil limiter":   {limiter: nil, want: []string{"ratelimit limiter"}},
		"failed local":  {limiter: noLocal, want: []string{"ratelimit limiter"}},
		"failed shared": {limiter: noShared, want: []string{"ratelimit limiter"}},
		"two names": {limiter: good, opts: []ratelimit.Option{ratelimit.PerKey(), ratelimit.By(queue)},
			want: []string{"ratelimit.By and PerKey"}},
		"all": {opts: []ratelimit.Option{ratelimit.PerKey(), ratelimit.By(nil), ratelimit.Timeout(-1)},
			want: []string{"ratelimit limiter", "ratelimit.By", "ratelimit.By and PerKey", "ratelimit.Timeout"}},
	} {
		mw, err := ratelimit.New(c.limiter, c.opts...)
		if got := fields(err); !slices.Equal(got, c.want) || (mw == nil) != (len(c.want) > 0) {
			t.Errorf("%s: faults of %q, want %q", name, got, c.want)
		}
	}
	for d, ok := range map[time.Duration]bool{
		0: false, -1: false, time.Millisecond - 1: false, ratelimit.MaxTimeout + 1: false,
		math.MinInt64: false, math.MaxInt64: false,
		time.Millisecond: true, ratelimit.DefaultTimeout: true, ratelimit.MaxTimeout: true,
	} {
		if _, err := ratelimit.New(good, ratelimit.Timeout(d)); (err == nil) != ok {
			t.Errorf("Timeout(%s): %v", d, err)
		}
	}
}
