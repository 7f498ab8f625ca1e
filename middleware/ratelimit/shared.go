package ratelimit

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/zqueue/zqueue/middleware/internal/groupcommit"
	"github.com/zqueue/zqueue/middleware/internal/luascript"
)

//go:embed lua/reserve.lua
var reserveText string

// SharedLimiter is a Limiter in Redis, for all processes that use the same scope. It is safe for concurrent use;
// concurrent calls share round trips. It uses the client that it was given, with that client's timeouts, and does not
// close it.
type SharedLimiter struct {
	rdb    redis.UniversalClient
	cfg    sharedConfig
	prefix string
	script luascript.Script
	args   []any // the pace, for the script
	asked  groupcommit.Group[call, answer]
}

type sharedConfig struct{ pace }

// SharedOption configures a SharedLimiter.
type SharedOption interface{ applyShared(*sharedConfig) }

var scopePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// Shared makes a limiter for all processes together: limit starts a second, from MinLimit to MaxLimit, and up to
// burst at once after a pause, 1 to MaxBurst. Each name has the whole limit. The interval between two starts is
// rounded up to whole microseconds. The server's clock counts.
//
// scope names the limit in Redis and keeps apart what must not meet: 1 to 128 bytes of [A-Za-z0-9._-]. All users of a
// scope should give the same limit; while they do not, as during a deployment, each slot is an interval of its giver's.
// Shared lists all that is wrong with its arguments, as *zq.InvalidError, and does no I/O. Needs Redis 6.2 or newer,
// alone or a Cluster.
func Shared(
	rdb redis.UniversalClient, scope string, limit float64, burst int, opts ...SharedOption,
) (*SharedLimiter, error) {
	c := sharedConfig{pace: newPace(limit, burst)}
	for _, o := range opts {
		if o != nil {
			o.applyShared(&c)
		}
	}
	fault := c.faults("Shared")
	if rdb == nil {
		fault = errors.Join(fault, invalid("ratelimit.Shared client", "nil", "a redis client"))
	}
	if !scopePattern.MatchString(scope) {
		fault = errors.Join(fault, invalid("ratelimit.Shared scope", strconv.Quote(scope), "1 to 128 bytes of [A-Za-z0-9._-]"))
	}
	if fault != nil {
		return nil, fault
	}
	l := &SharedLimiter{rdb: rdb, cfg: c, prefix: "zq:{rate/" + scope + "/", script: luascript.New(reserveText)}
	for _, d := range []time.Duration{c.interval(), c.tolerance(), c.horizon(), c.kept(), c.longest()} {
		l.args = append(l.args, d.Microseconds())
	}
	l.asked.Name, l.asked.Send = "ratelimit", l.send
	return l, nil
}

// Reserve is Limiter's. When ctx ends first, it returns the cause, and a slot may be given away all the same; to ask
// again for the same message finds it. What was told to run at once and is asked again has to pay again.
func (l *SharedLimiter) Reserve(ctx context.Context, name, id string) (time.Duration, error) {
	a, err := l.asked.Join(ctx, call{name: name, id: id})
	if err == nil {
		err = a.err
	}
	if err != nil {
		return 0, err
	}
	if a.code == codeFar {
		return spread(a.wait, l.cfg.longest(), id), nil
	}
	return a.wait, nil
}

// call asks for a message's leave under a name.
type call struct{ name, id string }

type answer struct {
	code int64
	wait time.Duration
	err  error
}

// Codes of the script's reply: 0 is leave to run at once.
const (
	codeSlot = 1
	codeFar  = 2
)

// send asks for all calls in one round trip.
func (l *SharedLimiter) send(ctx context.Context, calls []call) []answer {
	list := make([]luascript.Call, len(calls))
	for i, c := range calls {
		sum := sha256.Sum256([]byte(c.id)) // ids may be long, and this is what every slot takes
		list[i] = luascript.Call{Keys: l.keys(c.name), Args: append([]any{string(sum[:16])}, l.args...)}
	}
	answers := make([]answer, len(calls))
	for i, cmd := range l.script.Run(ctx, l.rdb, list) {
		answers[i] = read(cmd)
	}
	return answers
}

func read(cmd *redis.Cmd) answer {
	reply, err := cmd.Int64Slice()
	if err == nil && (len(reply) != 2 || reply[0] < 0 || reply[0] > codeFar) {
		err = fmt.Errorf("the script answered %v", reply)
	}
	if err != nil {
		return answer{err: fmt.Errorf("ratelimit: reserve: %w", err)}
	}
	return answer{code: reply[0], wait: time.Duration(reply[1]) * time.Microsecond}
}

// keys are those of a name. Each name has a hash tag of its own, so that they spread over a Cluster; it is a hash,
// for a name may hold any bytes.
func (l *SharedLimiter) keys(name string) []string {
	sum := sha256.Sum256([]byte(name))
	tag := l.prefix + hex.EncodeToString(sum[:16]) + "}:"
	return []string{tag + "pace", tag + "slots"}
}
