package middleware_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware"
	"github.com/zqueue/zqueue/middleware/idempotency"
	"github.com/zqueue/zqueue/middleware/ratelimit"
	"github.com/zqueue/zqueue/middleware/retry"
	"github.com/zqueue/zqueue/middleware/sequence"
	"github.com/zqueue/zqueue/zqfx/zq"
)

// env is what plans of these tests are built with; nobody answers at that address.
func env(t *testing.T) middleware.Env {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = rdb.Close() })
	return middleware.Env{Queue: "orders", Redis: rdb}
}

func through(next zq.Handler) zq.Handler { return next }

func anyLimit(t *testing.T) ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.Local(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestStandardOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan middleware.Plan
		want string
	}{
		"defaults": {
			middleware.Standard(),
			"recovery tracing metrics logging deadletter retry | inner recovery",
		},
		"all, given in any order": {
			middleware.Standard(middleware.User("b", through), middleware.RateLimit(10, 1),
				middleware.Idempotency(idempotency.FromID()), middleware.Sequence(), middleware.User("a", through),
				middleware.Timeout(time.Second), middleware.Tracing(), middleware.InnerRecovery()),
			"recovery tracing metrics logging deadletter retry timeout sequence idempotency ratelimit user:b user:a | inner recovery",
		},
		"without": {
			middleware.Standard(middleware.Timeout(time.Second), middleware.RateLimit(10, 1)).Without(middleware.RoleTracing,
				middleware.RoleMetrics, middleware.RoleInnerRecovery, middleware.RoleRateLimit),
			"recovery logging deadletter retry timeout",
		},
		"beside the rate limit": {
			middleware.Standard(middleware.RateLimitIn(anyLimit(t)), middleware.User("out", through).Before(middleware.RoleRateLimit),
				middleware.User("in", through).After(middleware.RoleRateLimit), middleware.User("a", through)).
				Without(middleware.RoleTracing, middleware.RoleMetrics),
			"recovery logging deadletter retry user:out ratelimit user:in user:a | inner recovery",
		},
		"beside": {
			middleware.Standard(middleware.User("in1", through).After(middleware.RoleRetry),
				middleware.User("out1", through).Before(middleware.RoleRetry), middleware.User("in2", through).After(middleware.RoleRetry),
				middleware.User("out2", through).Before(middleware.RoleRetry),
				middleware.User("last", through).After(middleware.RoleInnerRecovery)),
			"recovery tracing metrics logging deadletter user:out1 user:out2 retry user:in1 user:in2 | inner recovery user:last",
		},
		"ordered": {
			middleware.Ordered(middleware.User("a", through), middleware.Retry(), middleware.User("b", through)),
			"user:a retry user:b",
		},
		"empty": {middleware.Plan{}, ""},
	} {
		want := strings.Fields(strings.ReplaceAll(c.want, "| inner recovery", "inner_recovery"))
		for i := range want {
			want[i] = strings.ReplaceAll(want[i], "_", " ")
		}
		s, err := c.plan.Build(env(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(s.Names, want) {
			t.Errorf("%s: %q, want %q", name, s.Names, want)
		}
		if len(s.Chain) != len(want) {
			t.Errorf("%s: %d middleware, want %d", name, len(s.Chain), len(want))
		}
	}
}

// Each fault is one line that says why, and all are told at once.
func TestFaultsOfPlans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan middleware.Plan
		want []string
	}{
		"order": {
			middleware.Ordered(middleware.Retry(), middleware.DeadLetter(), middleware.Tracing()),
			[]string{
				"deadletter outside retry: what retry gives up on must reach it",
				"tracing outside retry: the span must see", "tracing outside deadletter: the span must see",
			},
		},
		"recovery inside": {
			middleware.Ordered(middleware.User("auth", through), middleware.Recovery()),
			[]string{"recovery outside user:auth: it catches panics of the chain itself"},
		},
		"sequence inside idempotency": {
			middleware.Ordered(middleware.Idempotency(idempotency.FromID()), middleware.Sequence()),
			[]string{"sequence outside idempotency: a duplicate that idempotency skips must confirm its number too"},
		},
		"ratelimit outside all": {
			middleware.Ordered(middleware.RateLimit(10, 1), middleware.Tracing(), middleware.Metrics(), middleware.Logging(),
				middleware.DeadLetter(), middleware.Retry(), middleware.Timeout(time.Second), middleware.Sequence(),
				middleware.Idempotency(idempotency.FromID())),
			[]string{
				"tracing outside ratelimit: ", "metrics outside ratelimit: ", "logging outside ratelimit: ",
				"deadletter outside ratelimit: what they send", "retry outside ratelimit: it decides on their errors",
				"timeout outside ratelimit: their calls are part",
				"sequence outside ratelimit: a message that waits for its predecessor must not use up the rate",
				"idempotency outside ratelimit: a skipped duplicate must not use up the rate",
			},
		},
		"ratelimit inside inner recovery": {
			middleware.Ordered(middleware.InnerRecovery(), middleware.RateLimitIn(anyLimit(t))),
			[]string{"ratelimit outside inner recovery: the inner recovery stands next to the handler"},
		},
		"twice": {
			middleware.Standard(middleware.Retry(), middleware.Retry(), middleware.User("a", through), middleware.User("a", through),
				middleware.RateLimit(10, 1), middleware.RateLimitIn(anyLimit(t))),
			[]string{"plan is retry twice", "plan is user:a twice", "plan is ratelimit twice"},
		},
		"zero and nameless": {
			middleware.Ordered(middleware.Layer{}, middleware.User("", through)),
			[]string{"layer 1 is the zero Layer", "a user layer without a name"},
		},
		"a place in Ordered": {
			middleware.Ordered(middleware.Retry(), middleware.User("a", through).Before(middleware.RoleRetry)),
			[]string{"no Before or After in Ordered"},
		},
		"a place for no user layer": {
			middleware.Standard(middleware.Timeout(time.Second).Before(middleware.RoleTracing)),
			[]string{"Before and After on user layers alone", "tracing outside timeout"},
		},
		"beside nothing": {
			middleware.Standard(middleware.User("a", through).After(middleware.RoleTimeout),
				middleware.User("b", through).After(middleware.RoleUser)),
			[]string{"user:a beside timeout", "user:b beside user"},
		},
		"outside recovery": {
			middleware.Standard(middleware.User("a", through).Before(middleware.RoleRecovery)),
			[]string{"recovery outside user:a"},
		},
	} {
		err := c.plan.Validate()
		if !errors.Is(err, zq.ErrInvalid) {
			t.Errorf("%s: %v, want a *zq.InvalidError", name, err)
			continue
		}
		for _, want := range c.want {
			if strings.Count(err.Error(), want) != 1 {
				t.Errorf("%s: %q is not once in\n%v", name, want, err)
			}
		}
		if _, err := c.plan.Build(env(t)); !errors.Is(err, zq.ErrInvalid) {
			t.Errorf("%s: built, with %v", name, err)
		}
	}
}

func TestFaultsOfLayersAreToldTogether(t *testing.T) {
	t.Parallel()
	_, err := middleware.Standard(middleware.Retry(retry.MaxAttempts(-1)), middleware.Timeout(-5),
		middleware.Idempotency(idempotency.FromID()), middleware.Sequence(sequence.Limit(0)),
		middleware.User("auth", nil)).Build(middleware.Env{})
	if !errors.Is(err, zq.ErrInvalid) {
		t.Fatalf("built, with %v", err)
	}
	for _, want := range []string{
		"retry: ", "timeout: ", "idempotency: zq: Env.Redis is nil", "sequence: ", "sequence.Limit", "sequence queue", "user:auth: ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
	// Beside faults of the order as well.
	_, err = middleware.Ordered(middleware.Timeout(-5), middleware.Retry()).Build(env(t))
	if err == nil || !strings.Contains(err.Error(), "retry outside timeout") || !strings.Contains(err.Error(), "timeout: ") {
		t.Errorf("got %v", err)
	}
}

func TestPlansAreValues(t *testing.T) {
	t.Parallel()
	p := middleware.Standard(middleware.User("a", through))
	names := p.Names()
	p.Without(middleware.RoleTracing, middleware.RoleUser)
	layers := []middleware.Layer{middleware.Retry(), middleware.Timeout(time.Second)}
	o := middleware.Ordered(layers...)
	layers[0], layers[1] = layers[1], layers[0]
	if !slices.Equal(p.Names(), names) {
		t.Errorf("Without changed the plan: %v", p.Names())
	}
	if err := o.Validate(); err != nil {
		t.Errorf("the caller's list is the plan's: %v", err)
	}
}

// FAULTS B15: of the 24 orders of four layers the standard one is taken, and every other is refused, with a line that
// says why for each pair that stands the wrong way round.
func TestFaultB15AllOrders(t *testing.T) {
	t.Parallel()
	for _, outermost := range []middleware.Layer{middleware.Recovery(), middleware.Tracing()} {
		layers := []middleware.Layer{
			outermost, middleware.DeadLetter(), middleware.Retry(), middleware.Idempotency(idempotency.FromID()),
		}
		standard := middleware.Standard(layers...).Without(middleware.RoleMetrics, middleware.RoleLogging,
			middleware.RoleInnerRecovery).Names()
		standard = slices.DeleteFunc(standard, func(name string) bool {
			return (name == "recovery" || name == "tracing") && name != outermost.Name()
		})
		tried, taken := 0, 0
		permute(layers, func(order []middleware.Layer) {
			tried++
			p := middleware.Ordered(order...)
			_, err := p.Build(env(t))
			if err == nil {
				taken++
				if !slices.Equal(p.Names(), standard) {
					t.Errorf("%v is taken", p.Names())
				}
				return
			}
			reasonForEachPair(t, p.Names(), standard, err)
		})
		if tried != 24 || taken != 1 {
			t.Errorf("%d orders tried, %d taken", tried, taken)
		}
	}
}

// reasonForEachPair expects one line for each pair that stands the wrong way round, and no other.
func reasonForEachPair(t *testing.T, order, standard []string, err error) {
	t.Helper()
	lines := strings.Split(err.Error(), "\n")
	for i, inner := range order {
		for _, outer := range order[i+1:] {
			if slices.Index(standard, outer) > slices.Index(standard, inner) {
				continue
			}
			at := slices.IndexFunc(lines, func(line string) bool {
				_, why, ok := strings.Cut(line, "want "+outer+" outside "+inner+": ")
				return ok && len(why) > 10
			})
			if at < 0 {
				t.Errorf("%v: no reason why %s stands outside %s in\n%v", order, outer, inner, err)
				continue
			}
			lines = slices.Delete(lines, at, at+1)
		}
	}
	if len(lines) > 0 {
		t.Errorf("%v: also told %q", order, lines)
	}
}

func permute(all []middleware.Layer, each func([]middleware.Layer)) {
	var step func(n int)
	step = func(n int) {
		if n == len(all) {
			each(all)
			return
		}
		for i := n; i < len(all); i++ {
			all[n], all[i] = all[i], all[n]
			step(n + 1)
			all[n], all[i] = all[i], all[n]
		}
	}
	step(0)
}

func TestRolesHaveNames(t *testing.T) {
	t.Parallel()
	if got := middleware.RoleInnerRecovery.String() + ", " + middleware.Role(99).String() + ", " + middleware.Role(-1).String(); got !=
		"inner recovery, role(99), role(-1)" {
		t.Error(got)
	}
	l := middleware.User("auth", through)
	if l.Role() != middleware.RoleUser || l.Name() != "user:auth" {
		t.Errorf("%s is a %s", l.Name(), l.Role())
	}
	if h := middleware.Ordered(l); h.Validate() != nil {
		t.Error(h.Validate())
	}
}
